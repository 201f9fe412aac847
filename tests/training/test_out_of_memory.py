"""A step that runs out of memory is taken anew in smaller micro-batches, and nothing of it is lost."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import shrink

from bakeoff.durable import remove
from bakeoff.objectives.heads import TokenHead
from bakeoff.resources import micro_batch
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.training import resolution
from bakeoff.training.pretrain import pretrain
from bakeoff.training.pretraining import Pretraining

STEPS = {"training.budget": {"steps": 6}, "training.micro_batch": "auto", "model.dropout": 0.1}
OPTIONS = {"progress": False, "device": "cpu"}


@pytest.fixture
def memory(monkeypatch):
    """Makes a pass over more rows than are set run out of memory, from a call on; the count says that 8 fit."""
    monkeypatch.setattr(resolution, "fitting_micro_batch", lambda *_: 8)
    loss, calls = TokenHead.loss, []

    def holds(rows, after=0, error=torch.OutOfMemoryError):
        calls.clear()

        def limited(self, states, labels, table):
            calls.append(len(labels))
            if len(calls) > after and len(labels) > 32 * rows:
                raise error("CUDA out of memory. Tried to allocate 20.00 GiB")
            return loss(self, states, labels, table)

        monkeypatch.setattr(TokenHead, "loss", limited)

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
    assert "ran out of memory at step 0, which is taken anew: micro-batches of 4 rows in place of 8 rows" in said
    run = Run.open(run.path)
    assert run.recipe.training.micro_batch == 2
    changes = json.loads((run.path / "environment.json").read_text())["micro_batches"]
    assert changes == [{"from_step": 0, "micro_batch": 4}, {"from_step": 0, "micro_batch": 2}]


def test_a_later_step_is_taken_anew_and_a_resumed_run_has_its_parts(memory, corpus, tmp_path):
    """A checkpoint is written where the parts change, from which a run goes on that is killed before its next one."""
    recipe = shrink("gpt-tiny", **STEPS)
    runs = []
    for name in ("whole", "stopped"):
        memory(rows=3, after=3)
        until = 4 if name == "stopped" else None
        runs.append(pretrain(recipe, corpus.path, tmp_path / name, until=until, **OPTIONS))
    whole, stopped = runs
    changes = stopped.environment["micro_batches"]
    assert [each["micro_batch"] for each in changes] == [4, 2]
    assert 0 < changes[0]["from_step"] == changes[1]["from_step"] < 4
    assert stopped.checkpoints / f"step-{changes[0]['from_step']:08d}" in list_checkpoints(stopped.checkpoints)
    remove(stopped.checkpoints / "step-00000004")
    assert same(weights(pretrain(None, None, tmp_path / "stopped", resume=True, **OPTIONS)), weights(whole))


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


def test_memory_that_runs_out_while_weights_move_ends_the_training(memory, corpus, tmp_path, monkeypatch):
    """Some weights are moved then, so that the step cannot be taken anew."""
    fails = torch.OutOfMemoryError("CUDA out of memory")

    def step(self, closure=None):
        raise fails

    monkeypatch.setattr(torch.optim.AdamW, "step", torch.optim.Optimizer.profile_hook_step(step))
    cut = []
    monkeypatch.setattr(Pretraining, "in_smaller_parts", lambda self, step: cut.append(step))
    recipe = shrink("gpt-tiny", **STEPS, **{"training.optimizer": {"kind": "adamw", "lr": 1e-3}})
    with pytest.raises(RuntimeError, match="out of memory"):
        pretrain(recipe, corpus.path, tmp_path / "run", **OPTIONS)
    assert not cut


def test_auto_is_decided_by_the_count_and_written_into_the_run(corpus, tmp_path, monkeypatch):
    recipe = shrink("gpt-tiny", **STEPS)
    monkeypatch.setattr(micro_batch, "free_memory", lambda: 1 << 40)
    run = pretrain(recipe, corpus.path, tmp_path / "run", until=1, **OPTIONS)
    assert run.recipe.training.micro_batch is None
    assert run.environment["recipe"]["training"]["micro_batch"] == "auto"
    assert pretrain(recipe, corpus.path, tmp_path / "run", resume=True, **OPTIONS).finished
