"""Weights that are kept at stated points of a training, as runs; and the points themselves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.conftest import PLAIN, shrink
from tests.interrupting import interrupt_at

from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.save_points import SavePoint, SavePoints, amount_text
from bakeoff.overview.listing import list_runs
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate
from bakeoff.training.pretrain import pretrain


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


def weights(path):
    return {name: tensor.tolist() for name, tensor in load_file(path / "model.safetensors").items()}


def recipe(steps=12, **changes):
    return shrink("bert-tiny", **{**PLAIN, "training.budget": {"steps": steps}, **changes})


def test_points_are_read_as_they_are_typed():
    points = SavePoints.parse_texts(["words=1M..3M:1M,10M", "steps=100,2k", "shares=0.1..0.3:0.1"])
    assert points.words == [1_000_000, 2_000_000, 3_000_000, 10_000_000]
    assert (points.steps, points.shares) == ([100, 2000], [0.1, 0.2, 0.3])
    assert [str(point) for point in points.points()][:3] == ["steps=100", "steps=2k", "words=1M"]
    assert SavePoints.parse({"words": "1M..3M:1M"}, "a recipe").words == points.words[:3]
    assert SavePoints.parse(points.model_dump(mode="json"), "again") == points


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1M", "give a unit and points, such as words="),
        ("word=1M", "unknown unit 'word'; did you mean 'words'"),
        ("seconds=20", "unknown unit 'seconds'; choose from"),
        ("words=", "'' is not a positive number"),
        ("words=1M,,2M", "'' is not a positive number"),
        ("steps=1.5", "steps.0"),
        ("steps=-3", "'-3' is not a positive number"),
        ("shares=2", "2 is more than the whole training, 1"),
        ("words=5M..1M:1M", "ends before it begins"),
        ("steps=1..1e9:1", "1,000,000,000 points, more than 1,000"),
    ],
)
def test_what_is_no_point_is_refused_in_one_line(text, told):
    with pytest.raises(UserError, match=told) as caught:
        SavePoints.parse_texts([text])
    assert "--save-at" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.integers(1, 10**12) | st.floats(1e-6, 1e6))
def test_an_amount_is_written_as_it_is_read(amount):
    amount = float(f"{amount:.12g}")
    (read,) = SavePoints.parse_texts([f"epochs={amount_text(amount)}"]).epochs
    assert read == pytest.approx(amount, rel=1e-11)


def test_weights_are_kept_as_runs_and_the_training_stays_the_same(corpus, tmp_path):
    """A run that was kept after so many steps has the weights of a training that was stopped there."""
    points = SavePoints(steps=[5], shares=[0.75], epochs=[1000.0])
    plain = train(recipe(), corpus, tmp_path / "plain")
    run = train(recipe(), corpus, tmp_path / "run", save_at=points)
    assert weights(run.path) == weights(plain.path)
    assert [line["loss"] for line in run.metrics()] == [line["loss"] for line in plain.metrics()]
    assert sorted(path.name for path in run.saved.iterdir()) == ["shares-0.75", "steps-5"]
    waiting = train(recipe(), corpus, tmp_path / "waiting", until=5)
    kept = Run.open_finished(run.saved / "steps-5")
    assert weights(kept.path) == weights(waiting.weights_file().parent)
    assert (kept.step(), kept.summary["saved_at"], Run.open(run.saved / "shares-0.75").step()) == (5, "steps=5", 9)
    measured = evaluate(kept.path, corpus=corpus.path, device="cpu")
    assert measured["losses"] == pytest.approx(kept.summary["validation"]["losses"], rel=0.01)  # of more rows
    assert [line["step"] for line in kept.metrics()] == [0, 1, 2, 3, 4, 5, 5]
    listed = {entry.path.name: (entry.state, entry.step, entry.steps) for entry in list_runs(run.path)}
    assert listed["steps-5"] == ("saved", 5, 12)


def test_a_point_in_words_is_the_first_step_with_so_many(corpus, tmp_path):
    whole = train(recipe(), corpus, tmp_path / "whole")
    words = {line["step"]: line["words"] for line in whole.metrics() if line["kind"] == "train"}
    assert words[12] == pytest.approx(whole.summary["tokens"] * corpus.words_per_token, abs=1)
    points = SavePoints(words=[words[3] + 1, words[7] - 1, words[12] + 2])
    run = train(recipe(), corpus, tmp_path / "run", save_at=points)
    steps = sorted(Run(path).step() for path in run.saved.iterdir())
    assert steps == [4, 7, 12]  # the last is the end, which has about as many


@pytest.mark.parametrize("name", ["bert-tiny", "transformer-xl-tiny"])
def test_kept_weights_are_the_same_after_interruptions(name, corpus, tmp_path, monkeypatch):
    asked = shrink(name, **PLAIN, **{"training.budget": {"steps": 10}, "training.save_at": {"steps": [3, 6, 8]}})
    whole = train(asked, corpus, tmp_path / "whole")
    for step in (4, 6):
        with monkeypatch.context() as patch:
            interrupt_at(patch, step)
            with pytest.raises(Interrupted):
                train(asked, corpus, tmp_path / "parts", resume=step > 4)
    parts = train(asked, corpus, tmp_path / "parts", resume=True)
    assert weights(parts.path) == weights(whole.path)
    for point in ("steps-3", "steps-6", "steps-8"):
        assert weights(parts.saved / point) == weights(whole.saved / point)


def test_what_was_kept_after_the_checkpoint_is_made_anew(corpus, tmp_path):
    """As after a kill: the training goes on from an older step, and what it kept later belongs to a lost course."""
    asked = recipe()
    points = SavePoints(steps=[3, 8])
    run = train(asked, corpus, tmp_path / "run", save_at=points, until=5)
    (run.saved / "steps-3").rename(run.saved / "steps-8")
    summary = run.saved / "steps-8" / "summary.json"
    values = json.loads(summary.read_text())
    (run.saved / "steps-8" / "bakeoff.sha256").unlink()
    summary.write_text(json.dumps(values | {"steps": 8}))
    (run.saved / ".steps-3.unfinished").mkdir()
    run = train(asked, corpus, tmp_path / "run", save_at=points, resume=True)
    assert [path.name for path in run.saved.iterdir()] == ["steps-8"]
    assert weights(run.saved / "steps-8") != weights(run.path)


def test_points_beyond_the_end_are_told_before_the_training(corpus, tmp_path):
    notes = []
    points = SavePoints(steps=[2, 13], words=[10**9])
    pretrain(recipe(), corpus.path, tmp_path / "run", save_at=points, device="cpu", progress=notes.append)
    lines = [note["line"] for note in notes if "line" in note]
    assert [line for line in lines if "nothing is saved at steps=13, words=1B" in line]


def test_a_budget_in_words_is_one_in_tokens(corpus, tmp_path):
    tokens = 12 * 8 * 40
    by_tokens = train(recipe(), corpus, tmp_path / "a", budget=Budget(tokens=tokens)).planned_steps
    by_words = train(recipe(), corpus, tmp_path / "b", budget=Budget(words=round(tokens * corpus.words_per_token)))
    assert by_words.planned_steps == by_tokens


def test_a_point_has_a_folder_of_its_own():
    points = SavePoints.parse_texts(["words=1M,1.5M,1500001", "epochs=0.5"]).points()
    assert [point.folder for point in points] == ["words-1M", "words-1.5M", "words-1500001", "epochs-0.5"]
    assert SavePoint("steps", 1000.0).folder == "steps-1k"
