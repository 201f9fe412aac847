"""A step that runs out of memory is taken anew in smaller micro-batches, and nothing of it is lost."""

import json
import time

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import shrink, without_dropout
from tests.shortages import run_out_in_optimizer

from bakeoff.durable import remove
from bakeoff.objectives.heads import TokenHead
from bakeoff.resources import micro_batch
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.trainer import save_plan
from bakeoff.trainer.checkpoint import Checkpoint
from bakeoff.training import resolution
from bakeoff.training.pretrain import pretrain
from bakeoff.training.pretraining import Pretraining

STEPS = {"training.budget": {"steps": 6}, "training.micro_batch": "auto", "model.dropout": 0.1}
OPTIONS = {"progress": False, "device": "cpu"}


@pytest.fixture
def memory(monkeypatch):
    """Makes a pass over more rows than are set run out of memory, from a call on; the count says that 8 fit."""
    monkeypatch.setattr(resolution, "fitting_micro_batch", lambda *_: 8)
    losses, calls = Pretraining.losses, []

    def holds(rows, after=0, error=torch.OutOfMemoryError):
        calls.clear()

        def limited(self, batch, counts):
            calls.append(1)
            made = losses(self, batch, counts)
            if len(calls) > after and len(batch.row.ids) > rows:
                raise error("CUDA out of memory. Tried to allocate 20.00 GiB")
            return made

        monkeypatch.setattr(Pretraining, "losses", limited)

    return holds


def weights(run):
    return load_file(run.weights_file())


def same(one, other):
    return all(torch.equal(one[key], other[key]) for key in one)


def test_the_run_is_that_of_the_smaller_micro_batches_and_says_so(memory, corpus, tmp_path, capsys):
    """From the first step on nothing else was ever trained, so that the weights are those of a smaller micro-batch."""
    recipe = shrink("gpt-tiny", **STEPS)
    expected = pretrain(recipe.changed({"training.micro_batch": 2}), corpus.path, tmp_path / "small", **OPTIONS)
    memory(rows=3)
    run = pretrain(recipe, corpus.path, tmp_path / "run", **{**OPTIONS, "progress": True})
    assert same(weights(run), weights(expected))
    said = capsys.readouterr().err
    expected_line = (
        "ran out of memory at step 0: micro-batches of 4 rows in place of 8 rows from here on, which is taken"
    )
    assert expected_line in said
    run = Run.open(run.path)
    assert run.recipe.training.micro_batch == 2
    changes = json.loads((run.path / "environment.json").read_text())["micro_batches"]
    assert changes == [{"from_step": 0, "micro_batch": 4}, {"from_step": 0, "micro_batch": 2}]


@pytest.mark.parametrize("name", ["gpt-tiny", "transformer-xl-tiny"])
def test_a_later_step_is_taken_anew_and_a_resumed_run_has_its_parts(memory, corpus, tmp_path, name):
    """A checkpoint is written where the parts change, from which a run goes on that is killed before its next one."""
    recipe = shrink(name, **STEPS)
    runs = []
    for out, until in (("whole", None), ("stopped", 4)):
        memory(rows=3, after=3)
        runs.append(pretrain(recipe, corpus.path, tmp_path / out, until=until, **OPTIONS))
    whole, stopped = runs
    changes = stopped.environment["micro_batches"]
    assert [each["micro_batch"] for each in changes] == [4, 2]
    assert 0 < changes[0]["from_step"] == changes[1]["from_step"] < 4
    assert stopped.checkpoints / f"step-{changes[0]['from_step']:08d}" in list_checkpoints(stopped.checkpoints)
    remove(stopped.checkpoints / "step-00000004")
    assert same(weights(pretrain(None, None, tmp_path / "stopped", resume=True, **OPTIONS)), weights(whole))


@pytest.mark.parametrize("begun", [False, True], ids=["not yet saved", "being saved"])
def test_the_files_change_after_the_checkpoint_of_the_step(memory, corpus, tmp_path, monkeypatch, begun):
    """Or a run that is killed in between would take steps before it in other parts than it had."""
    record, seen = Pretraining.record, []

    def note(self, change):
        seen.append((change["from_step"], {checkpoint_step(each) for each in list_checkpoints(self._run.checkpoints)}))
        record(self, change)

    monkeypatch.setattr(Pretraining, "record", note)
    if begun:  # a checkpoint after each step, written slowly
        write = Checkpoint.write
        monkeypatch.setattr(save_plan, "FIRST_CHECKPOINT", 0.0)
        monkeypatch.setattr(Checkpoint, "write", lambda self: (time.sleep(0.05), write(self)))
    memory(rows=3, after=3)
    recipe = shrink("gpt-tiny", **STEPS, **{"training.checkpoint_minutes": 1e-9 if begun else 60})
    pretrain(recipe, corpus.path, tmp_path / "run", **OPTIONS)
    assert seen
    assert all(step in there for step, there in seen)


@pytest.mark.parametrize("changes", [{"training.micro_batch": 8}, {"training.micro_batch": None}])
def test_a_size_that_was_given_stays(memory, corpus, tmp_path, changes):
    memory(rows=3)
    with pytest.raises(RuntimeError, match="out of memory"):
        pretrain(shrink("gpt-tiny", **STEPS | changes), corpus.path, tmp_path / "run", **OPTIONS)


def test_a_single_row_that_does_not_fit_ends_the_training(memory, corpus, tmp_path):
    memory(rows=0)
    with pytest.raises(RuntimeError, match="out of memory"):
        pretrain(shrink("gpt-tiny", **STEPS), corpus.path, tmp_path / "run", **OPTIONS)


def test_an_error_of_another_kind_is_not_taken_for_it(memory, corpus, tmp_path):
    class Other(RuntimeError):
        def __init__(self, text):
            super().__init__("a kernel failed")

    memory(rows=3, error=Other)
    with pytest.raises(Other):
        pretrain(shrink("gpt-tiny", **STEPS), corpus.path, tmp_path / "run", **OPTIONS)


class Shortage(torch.autograd.Function):
    """What runs out of memory in the backward pass alone."""

    @staticmethod
    def forward(context, loss):
        return loss.clone()

    @staticmethod
    def backward(context, upstream):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_the_backward_pass_may_run_out(corpus, tmp_path, monkeypatch):
    """Gradients of the micro-batches before it are dropped with it."""
    recipe = shrink("gpt-tiny", **STEPS)
    expected = pretrain(recipe.changed({"training.micro_batch": 2}), corpus.path, tmp_path / "small", **OPTIONS)
    monkeypatch.setattr(resolution, "fitting_micro_batch", lambda *_: 4)
    loss, seen = TokenHead.loss, []

    def limited(self, states, labels, table):
        seen.append(1)
        made = loss(self, states, labels, table)
        return Shortage.apply(made) if len(seen) == 2 and torch.is_grad_enabled() else made

    validated = Pretraining.evaluate
    monkeypatch.setattr(Pretraining, "evaluate", lambda self, position: (validated(self, position), seen.clear())[0])
    monkeypatch.setattr(TokenHead, "loss", limited)
    run = pretrain(recipe, corpus.path, tmp_path / "run", **OPTIONS)
    assert run.environment["micro_batches"] == [{"from_step": 0, "micro_batch": 2}]
    assert same(weights(run), weights(expected))


@pytest.mark.parametrize(
    ("name", "after"),
    [
        pytest.param(name, after, marks=[pytest.mark.slow] * (after != quick))
        for name, quick in (("transformer-xl-tiny", 0), ("xlnet-tiny", 3))
        for after in (0, 3, 5)
    ],
)
def test_streams_go_on_from_their_states_before_the_step(memory, corpus, tmp_path, name, after):
    """Without dropout the parts of a batch make no difference but rounding."""
    steps = {**STEPS, "model.dropout": 0.0}
    recipe = without_dropout(shrink(name, **steps))
    expected = pretrain(recipe.changed({"training.micro_batch": 2}), corpus.path, tmp_path / "small", **OPTIONS)
    memory(rows=3, after=after)
    run = pretrain(recipe, corpus.path, tmp_path / "run", **OPTIONS)
    (first, *_) = changes = run.environment["micro_batches"]
    assert [each["micro_batch"] for each in changes] == [4, 2]
    if first["from_step"] == 0:
        assert same(weights(run), weights(expected))
    for one, other in zip(losses(run), losses(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def losses(run):
    return [line["loss"] for line in run.metrics()]


ADAMW = {**STEPS, "training.optimizer": {"kind": "adamw", "lr": 1e-3}}


@pytest.mark.parametrize("number", [0, 4])
def test_where_weights_have_moved_the_training_begins_anew(corpus, tmp_path, monkeypatch, number, capsys):
    monkeypatch.setattr(resolution, "fitting_micro_batch", lambda *_: 8)
    recipe = shrink("gpt-tiny", **ADAMW)
    expected = pretrain(recipe.changed({"training.micro_batch": 4}), corpus.path, tmp_path / "small", **OPTIONS)
    run_out_in_optimizer(monkeypatch, number)
    run = pretrain(recipe, corpus.path, tmp_path / "run", **{**OPTIONS, "progress": True})
    assert same(weights(run), weights(expected))
    assert losses(run) == losses(expected)
    assert Run.open(run.path).recipe.training.micro_batch == 4
    assert run.environment["micro_batches"] == [{"from_step": 0, "micro_batch": 4}]
    line = f"ran out of memory at step {number}: micro-batches of 4 rows in place of 8 rows from"
    assert line in capsys.readouterr().err


def test_or_goes_on_from_its_last_checkpoint(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny", **ADAMW)
    monkeypatch.setattr(resolution, "fitting_micro_batch", lambda *_: 8)
    for name in ("whole", "run"):
        pretrain(recipe, corpus.path, tmp_path / name, until=2, **OPTIONS)
    environment = json.loads((tmp_path / "whole" / "environment.json").read_text())
    expected = Run.open(tmp_path / "whole")
    expected.replace_recipe(expected.recipe.changed({"training.micro_batch": 4}))
    expected.replace_environment(environment)
    expected = pretrain(None, None, tmp_path / "whole", resume=True, **OPTIONS)
    run_out_in_optimizer(monkeypatch, 2)
    run = pretrain(None, None, tmp_path / "run", resume=True, **OPTIONS)
    assert run.environment["micro_batches"] == [{"from_step": 2, "micro_batch": 4}]
    assert same(weights(run), weights(expected))


def test_rows_that_depend_on_each_other_stay_together(memory, corpus, tmp_path):
    """Other micro-batches would have other statistics, and be another training."""
    memory(rows=3)
    with pytest.raises(RuntimeError, match="out of memory"):
        pretrain(shrink("cnn-lm-tiny", **STEPS), corpus.path, tmp_path / "run", **OPTIONS)


def test_auto_is_decided_by_the_count_and_written_into_the_run(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny", **STEPS)
    monkeypatch.setattr(micro_batch, "free_memory", lambda: 1 << 40)
    run = pretrain(recipe, corpus.path, tmp_path / "run", until=1, **OPTIONS)
    assert run.recipe.training.micro_batch is None
    assert run.environment["recipe"]["training"]["micro_batch"] == "auto"
    assert pretrain(recipe, corpus.path, tmp_path / "run", resume=True, **OPTIONS).finished
