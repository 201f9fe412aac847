"""Trainings with the same outcome are done once and copied, and what is left out of the comparison changes nothing."""

import pytest
from test_execution import FakeEngine, folder, go
from test_execution import plan as plan_of
from tests.jobs.threads import Threads

from bakeoff.comparison.execution import compare
from bakeoff.comparison.running.equal_trainings import CopiedTraining, first_of_equals, without_pretraining
from bakeoff.comparison.running.planned_training import PlannedTraining
from bakeoff.errors import Interrupted, UserError
from bakeoff.recipe_files import load_recipe
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

__all__ = ["folder"]

TINY = {"model.encoder.width": 32, "model.encoder.block.mixer.heads": 2, "model.encoder.block.ffn.width": 32}
CELLS = {"recipe": "three", "grid": {"training.clip": [1, 2, 3]}}


def files(path):
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


def test_cells_that_differ_in_pre_training_share_what_is_trained_from_scratch(folder):
    engine, said = FakeEngine(), []
    options = {"engine": engine, "report": lambda results, path: None, "progress": said.append}
    results = compare(plan_of(folder, recipes=[CELLS], seeds=2), folder / "out", **options)
    assert len(engine.of("pretrain")) == 6
    assert [kind for kind, *_ in engine.of("finetune")].count("pretrained") == 6
    assert [kind for kind, *_ in engine.of("finetune")].count("scratch") == 2
    assert "seed 1: fine-tuning “three, clip 2” on “mood” from scratch: the same as “three, clip 1”, copied" in said
    scores = {
        (entry.label, score.seed): score.test
        for entry in results.recipes
        for score in entry.scores
        if score.initialisation == "scratch"
    }
    assert len(scores) == 6
    for seed in (0, 1):
        assert len({str(scores[f"three, clip {clip}", seed]) for clip in (1, 2, 3)}) == 1
    assert str(scores["three, clip 1", 0]) != str(scores["three, clip 1", 1])
    again = FakeEngine()
    go(folder, again, recipes=[CELLS], seeds=2)
    assert again.calls == []


def test_the_same_recipe_fine_tuned_in_two_ways_is_pre_trained_once(folder):
    ways = [{"recipe": "one", "name": f"{length} tokens", "finetune": {"length": length}} for length in (16, 32)]
    engine = FakeEngine()
    go(folder, engine, recipes=ways, seeds=2)
    assert len(engine.of("pretrain")) == 2
    assert len(engine.of("finetune")) == 8
    runs = folder / "out" / "runs"
    assert files(runs / "16-tokens" / "seed-0" / "pretrain") == files(runs / "32-tokens" / "seed-0" / "pretrain")


@pytest.mark.parametrize("work", [1.0, 0.5], ids=["as measured", "corrected"])
def test_minutes_are_as_many_steps_for_recipes_that_are_one(folder, work):
    ways = [{"recipe": "one", "name": f"{length} tokens", "finetune": {"length": length}} for length in (16, 32, 48)]
    engine, steps = FakeEngine(works={"one": work, "two": 0.5}), int(240 / work)
    results = go(folder, engine, recipes=[*ways[:2], "two"], seeds=2, budget="minutes=2")
    assert engine.of("measure") == [("one", "two")]
    assert results.budget.steps == {"16 tokens": steps, "32 tokens": steps, "two": 480}
    assert {*results.budget.corrected} == {"16 tokens", "32 tokens", "two"}
    assert len([name for name, *_ in engine.of("pretrain") if name == "one"]) == 2 + (work < 1)  # one begins anew
    more = FakeEngine(speeds=[9.0])
    results = go(folder, more, recipes=[*ways, "two"], seeds=2, budget="minutes=2")
    assert more.of("pretrain") == more.of("measure") == []
    assert results.budget.steps["48 tokens"] == steps
    assert len({run.steps for entry in results.recipes[:3] for run in entry.runs}) == 1


def test_a_training_whose_equal_diverged_is_tried_itself(folder):
    engine = FakeEngine(diverging=[("finetune", "pretrained", "mood")])
    with pytest.raises(UserError, match="every recipe diverged"):
        go(folder, engine, recipes=[CELLS], seeds=1)
    assert [kind for kind, *_ in engine.of("finetune")] == ["pretrained"] * 3


def test_copies_come_after_their_training_however_many_run_at_once(folder):
    engine = FakeEngine()
    recipes = [{"recipe": "one", "name": f"of {batch}", "finetune": {"batch": batch}} for batch in (8, 16, 32, 64)]
    workers = Threads(["cpu"] * 4, engine.carry_out)
    options = {"engine": engine, "workers": workers, "report": lambda results, path: None}
    results = compare(plan_of(folder, recipes=recipes, seeds=2), folder / "out", **options)
    assert len(engine.of("pretrain")) == 2
    assert len(engine.of("finetune")) == 16
    assert [len(entry.scores) for entry in results.recipes] == [4] * 4


def test_a_copy_that_was_interrupted_is_made_anew(tmp_path, monkeypatch):
    source = tmp_path / "source"
    (source / "checkpoints").mkdir(parents=True)
    (source / "results.json").write_text("{}")
    (source / "checkpoints" / "step").write_text("large")
    job = CopiedTraining(title="copy", out=tmp_path / "out", seed=0, device="cpu", source=source)

    def stopped(*arguments, **options):
        (tmp_path / ".out.unfinished").mkdir()
        raise Interrupted("stopped", 2)

    with monkeypatch.context() as patch:
        patch.setattr("bakeoff.comparison.running.equal_trainings.shutil.copytree", stopped)
        with pytest.raises(Interrupted):
            job.carry_out(progress=False, note=lambda note: None)
    assert not (tmp_path / "out").exists()
    job.carry_out(progress=False, note=lambda note: None)
    assert {path.name for path in tmp_path.iterdir()} == {"source", "out"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results.json"}


def test_trainings_of_another_kind_are_not_equal(tmp_path):
    class Other(PlannedTraining):
        pass

    made = [
        kind(tmp_path / str(number), "done", {"seed": seed})
        for number, (kind, seed) in enumerate(
            [(PlannedTraining, 0), (Other, 0), (PlannedTraining, 1), (Other, 0), (PlannedTraining, 0)]
        )
    ]
    assert first_of_equals(made) == {3: 1, 4: 0}
    made[4].begin()
    made[4].directory.mkdir()
    (made[4].directory / "done").touch()
    assert first_of_equals(made) == {0: 4, 3: 1}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    where = tmp_path_factory.mktemp("labelled")
    for split in ("train", "dev", "test"):
        rows = [f"{'good fine' if i % 2 else 'bad poor'} word{i % 7}\t{i % 2}" for i in range(24)]
        (where / f"{split}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    return where


def from_scratch(recipe, corpus, labelled, out):
    files = {split: labelled / f"{split}.tsv" for split in ("train", "dev", "test")}
    task = ClassificationConfig(**files, text_column="text", label_column="label")
    config = FinetuneConfig(epochs=2, length=16, learning_rate=1e-3)
    finetune(recipe, task, out, config=config, tokenizer=corpus.path, device="cpu", progress=False)
    return (out / "model.safetensors").read_bytes(), (out / "predictions.jsonl").read_bytes()


SAME = {
    "masks": {"objective.0.rate": 0.4, "objective.0.mask": 0.5},
    "spans": {"objective": [{"kind": "mlm", "rate": 0.3, "ngram": 3, "masking": "static"}]},
    "rows": {"input.format": "full_sentences"},
    "optimizer": {"training.batch": 4, "training.optimizer": {"kind": "adamw", "lr": 1e-4}, "training.clip": 0.1},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_what_is_left_out_changes_no_bit_of_a_fine_tuning_from_scratch(corpus, labelled, tmp_path, changes):
    usual, changed = (load_recipe("laptop-encoder-tiny", {**TINY, **each}) for each in ({}, changes))
    assert usual != changed
    one, other = (without_pretraining(recipe.model_dump(mode="json")) for recipe in (usual, changed))
    assert one == other
    found = [from_scratch(each, corpus, labelled, tmp_path / str(i)) for i, each in enumerate((usual, changed))]
    assert found[0] == found[1]


DIFFERENT = {
    "width": {"model.encoder.block.ffn.width": 64},
    "sentences": {"objective": [{"kind": "mlm"}, {"kind": "sop"}], "input.format": "segment_pair"},
    "precision": {"training.precision": "bfloat16"},
    "length": {"input.length": 64},
}


@pytest.mark.parametrize("changes", DIFFERENT.values(), ids=DIFFERENT)
def test_what_a_fine_tuning_reads_is_kept_apart(changes):
    tiny = {**TINY, "training.precision": "float32", "model.embedding.segments": 2}
    one, other = (load_recipe("laptop-encoder-tiny", {**tiny, **each}) for each in ({}, changes))
    one, other = (without_pretraining(recipe.model_dump(mode="json")) for recipe in (one, other))
    assert one != other
