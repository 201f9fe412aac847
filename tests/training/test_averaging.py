"""A run of the mean of the last weights, beside the run that was trained."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import PLAIN, crossed, shrink
from tests.interrupting import interrupt_at
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.comparison.running.work import ComparedPretraining
from bakeoff.errors import Interrupted, UserError
from bakeoff.jobs.job import Outcome
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.trainer import loop
from bakeoff.training import averaging
from bakeoff.training.averaging import snapshot_steps
from bakeoff.training.initial_weights import Start
from bakeoff.training.pretrain import pretrain


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


def weights(path):
    return load_file(path / "model.safetensors")


def course_of_weights(patch):
    """Keeps a copy of the weights after every step."""
    exact, behind = loop.optimize, {}

    def keeps(unit, parts, index):
        means = exact(unit, parts, index)
        behind[index + 1] = {name: tensor.clone() for name, tensor in unit.module.state_dict().items()}
        return means

    patch.setattr(loop, "optimize", keeps)
    return behind


@pytest.mark.parametrize(
    ("steps", "count", "expected"),
    [
        (30_000, 10, list(range(27_300, 30_001, 300))),
        (100_000, 5, [96_000, 97_000, 98_000, 99_000, 100_000]),
        (12, 5, [8, 9, 10, 11, 12]),
        (3, 10, [1, 2, 3]),
        (250, 3, [246, 248, 250]),
        (100, 0, []),
    ],
)
def test_snapshots_are_a_hundredth_of_the_steps_apart_and_end_with_the_last(steps, count, expected):
    assert snapshot_steps(steps, count) == expected


@pytest.mark.parametrize("name", [pytest.param("gpt-tiny", marks=pytest.mark.slow), "cnn-lm-tiny"])
def test_the_average_is_the_mean_of_the_weights_at_those_steps(name, corpus, tmp_path, monkeypatch):
    recipe = shrink(name, **{"training.budget": {"steps": 200}, "training.batch": 2, "input.length": 16, **PLAIN})
    behind = course_of_weights(monkeypatch)
    run = train(recipe, corpus, tmp_path / "run", average_last=4)
    found = weights(tmp_path / "run-average-4")
    steps = [194, 196, 198, 200]
    assert found.keys() == behind[200].keys()
    for key, tensor in found.items():
        expected = torch.stack([behind[step][key].double() for step in steps]).mean(0)
        torch.testing.assert_close(tensor.double(), expected, atol=1e-7, rtol=1e-6)
        assert tensor.dtype == behind[200][key].dtype
        assert torch.equal(weights(run.path)[key], behind[200][key])
    assert not torch.equal(found["model.embedding.tokens.weight"], behind[200]["model.embedding.tokens.weight"])
    assert not run.snapshots.exists()


def test_the_averaged_run_is_a_finished_run_of_its_own(corpus, tmp_path):
    run = train(shrink("gpt-tiny"), corpus, tmp_path / "run", average_last=3)
    averaged = Run.open_finished(tmp_path / "run-average-3")
    assert {path.name for path in averaged.path.iterdir()} == {path.name for path in run.path.iterdir()}
    steps = "the mean of its weights after steps 10, 11, 12"
    assert averaged.environment["origin"] == f"from {run.path}: {steps}"
    assert steps in (averaged.path / "README.md").read_text(encoding="utf-8")
    assert str(averaged.path) in (averaged.path / "README.md").read_text(encoding="utf-8")
    (line,) = averaged.metrics()
    assert line["kind"] == "validation"
    assert line["step"] == 12
    assert averaged.summary == {**run.summary, "validation": line}
    assert line["loss"] != run.summary["validation"]["loss"]
    measured = bakeoff.evaluate(averaged.path, corpus=corpus.path, examples=16, device="cpu")  # as validations
    assert measured["losses"] == pytest.approx(line["losses"])
    assert bakeoff.generate(averaged, ["The river"], device="cpu")
    more = train(None, corpus, tmp_path / "more", start=Start(run=averaged.path), budget=Budget(steps=2))
    assert more.finished
    with pytest.raises(UserError, match=r'begun with first weights "from .*, not "random"'):
        train(run.recipe, corpus, averaged.path, resume=True, average_last=3)
    # Without --resume it is the run that is in the way: moving its average would help nobody.
    with pytest.raises(UserError, match=r"/run: holds a run already; choose another --out, or --resume an unfinished"):
        train(shrink("gpt-tiny"), corpus, tmp_path / "run", average_last=3)


@pytest.mark.parametrize("stop", crossed([3, 9, 11], [9]))
def test_interrupted_and_resumed_gives_the_same_average(stop, corpus, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny", **{"model.dropout": 0.1})
    train(recipe, corpus, tmp_path / "whole", average_last=4)
    with monkeypatch.context() as patch:
        interrupt_at(patch, stop - 1)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "parts", average_last=4)
    kept = [f"step-{step:08d}.safetensors" for step in range(9, stop + 1)]
    snapshots = tmp_path / "parts" / "snapshots"
    assert sorted(path.name for path in snapshots.glob("step-*")) == kept
    assert not (tmp_path / "parts-average-4").exists()
    for count in (0, 5):
        with pytest.raises(UserError, match=f"begun with training.average_last 4, not {count}"):
            train(recipe, corpus, tmp_path / "parts", average_last=count, resume=True)
    snapshots.mkdir(exist_ok=True)
    (snapshots / "step-00000012.safetensors").write_bytes(b"of a step that was not reached again")
    train(recipe, corpus, tmp_path / "parts", average_last=4, resume=True)
    expected = weights(tmp_path / "whole-average-4")
    for key, tensor in weights(tmp_path / "parts-average-4").items():
        assert torch.equal(tensor, expected[key]), key


def test_an_average_that_was_interrupted_is_made_by_resume(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny", **{"training.average_last": 2})

    def stops(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(averaging, "validate", stops)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, corpus, tmp_path / "run")
    assert Run.open(tmp_path / "run").finished
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    train(recipe, corpus, tmp_path / "run", resume=True)
    assert Run.open(tmp_path / "run-average-2").finished
    assert not (tmp_path / "run" / "snapshots").exists()
    before = (tmp_path / "run-average-2" / "summary.json").stat().st_mtime_ns
    train(recipe, corpus, tmp_path / "run", resume=True)  # nothing to do
    assert (tmp_path / "run-average-2" / "summary.json").stat().st_mtime_ns == before


def test_a_place_that_is_taken_is_refused_before_the_training(corpus, tmp_path):
    (tmp_path / "run-average-2").mkdir()
    (tmp_path / "run-average-2" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"run-average-2: holds something already; .* \(--average-last 0\)"):
        train(shrink("gpt-tiny"), corpus, tmp_path / "run", average_last=2)
    assert not (tmp_path / "run").exists()
    assert train(shrink("gpt-tiny"), corpus, tmp_path / "run").finished


def test_a_lost_snapshot_is_named(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 10)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "run", average_last=4)
    (tmp_path / "run" / "snapshots" / "step-00000010.safetensors").unlink()
    with pytest.raises(UserError, match=r"step-00000010.safetensors: missing, though bakeoff.sha256 beside it lists"):
        train(recipe, corpus, tmp_path / "run", average_last=4, resume=True)
    (tmp_path / "run" / "snapshots" / "bakeoff.sha256").unlink()
    with pytest.raises(
        UserError, match=r"step-00000010.safetensors: missing: the training has finished, .* delete .*snapshots"
    ):
        train(recipe, corpus, tmp_path / "run", average_last=4, resume=True)
    assert Run.open(tmp_path / "run").finished
    assert not (tmp_path / "run-average-4").exists()


def test_the_flag_replaces_what_the_recipe_says(corpus, tmp_path):
    recipe = shrink("gpt-tiny", **{"training.average_last": 3})
    assert train(recipe, corpus, tmp_path / "other", average_last=2).recipe.training.average_last == 2
    assert train(recipe, corpus, tmp_path / "plain", average_last=0).finished
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "other-average-2", "plain"]


@pytest.mark.parametrize(
    ("name", "count"),
    [("transformer-base-wmt", 5), ("transformer-big-wmt", 20), ("light-wmt", 10), ("dynamic-wmt", 10), ("gpt-tiny", 0)],
)
def test_recipes_average_as_their_papers_do(name, count):
    assert load_recipe(name).training.average_last == count


def test_the_command_says_where_the_average_is(corpus, tmp_path):
    arguments = ["pretrain", "bert-tiny", "--corpus", str(corpus.path), "--out", str(tmp_path / "run")]
    arguments += ["--budget", "steps=4", "--average-last", "2", "--set", "input.length=32", "--device", "cpu"]
    arguments += ["--set", "model.encoder.width=32", "--set", "training.batch=4"]
    printed = CliRunner().invoke(app, arguments).output
    assert ["average", str(tmp_path / "run-average-2")] in [line.split() for line in printed.splitlines()]
    assert "average's held-out mlm" in printed
    again = json.loads(CliRunner().invoke(app, [*arguments, "--resume", "--json"]).stdout)
    assert again["average"]["run"] == str(tmp_path / "run-average-2")
    assert again["average"]["validation"]["kind"] == "validation"


def test_a_comparison_writes_no_averages(corpus, tmp_path):
    recipe = shrink("gpt-tiny", **{"training.average_last": 3})
    options = {"title": "a", "out": tmp_path / "run", "corpus": str(corpus.path), "seed": 0, "device": "cpu"}
    job = ComparedPretraining(recipe=recipe.model_dump(mode="json"), budget="steps=4", **options)
    assert job.carry_out(False, lambda note: None) == Outcome()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert not Run.open_finished(tmp_path / "run").snapshots.exists()


def test_a_kill_between_the_average_and_the_end_of_the_snapshots_is_mended_by_resume(corpus, tmp_path, monkeypatch):
    recipe, out = shrink("gpt-tiny"), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(averaging, "remove", lambda path: None)  # what stands after the renaming
        run = train(recipe, corpus, out, average_last=2)
    assert run.snapshots.exists()
    before = (tmp_path / "run-average-2" / "summary.json").read_bytes()
    assert train(recipe, corpus, out, average_last=2, resume=True).finished
    assert not run.snapshots.exists()
    assert (tmp_path / "run-average-2" / "summary.json").read_bytes() == before
