"""Fine-tunings that go on: after a stop, through several trainings, and from runs that are fine-tuned already."""

import errno
import json
import os
import shutil
import signal

import pytest
from safetensors.torch import load_file

from bakeoff import durable
from bakeoff.errors import Interrupted, UserError
from bakeoff.tasks import finetune as finetuning
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting import trials
from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.trainer import loop
from bakeoff.trainer.checkpoint import Checkpoint
from bakeoff.trainer.checkpoint_writer import CheckpointWriter

QUIET = {"device": "cpu", "progress": False}
SEVERAL = FinetuneConfig(learning_rate=[1e-4, 3e-3], epochs=[1, 2], least_steps=0, evaluations=4, patience=None)


@pytest.fixture(scope="module")
def whole(run, task, tmp_path_factory):
    """A fine-tuning that nothing has stopped; nobody changes it."""
    return finetune(run, task, tmp_path_factory.mktemp("whole") / "run", config=SEVERAL, **QUIET)


def stop_at(monkeypatch, training, step):
    """Have a signal come in a step of the training of that number."""
    began, own = [], loop.optimize

    def stops(unit, parts, index):
        if unit not in began:
            began.append(unit)
        if len(began) == training and index == step - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return own(unit, parts, index)

    monkeypatch.setattr(loop, "optimize", stops)


def without_times(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.mark.parametrize(
    ("training", "step"), [(2, 3), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 1), (4, 9)))]
)
def test_a_stopped_fine_tuning_goes_on_to_the_same_bits(run, whole, task, tmp_path, monkeypatch, training, step):
    with monkeypatch.context() as patch:
        stop_at(patch, training, step)
        with pytest.raises(Interrupted, match=f"stopped at step {step}; the same command with --resume goes on"):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="out: this run has not finished; its command goes on with --resume"):
        FinetunedRun.open(tmp_path / "out")
    found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    assert not list(tmp_path.glob(".*"))
    assert {file.name for file in found.path.iterdir()} == {file.name for file in whole.path.iterdir()}
    for name in ("model.safetensors", "predictions.jsonl", "task.yaml", "labels.json"):
        assert (found.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    lines = [without_times(FinetunedRun.open(each.path).metrics()) for each in (found, whole)]
    assert lines[0] == lines[1]
    assert without_times(each.model_dump() for each in found.trials) == without_times(
        each.model_dump() for each in whole.trials
    )
    assert found.scores == whole.scores


def test_after_a_kill_the_last_look_is_gone_on_from(run, whole, task, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "SAVED_EVERY", 0.0)

    class Killed(BaseException):
        pass

    own = Checkpoint.write
    saved = []

    def write(checkpoint):
        own(checkpoint)
        saved.append(checkpoint.path)
        if len(saved) == 7:
            os.rename(checkpoint.run.path, tmp_path / "kept")  # what a kill leaves is not removed
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", write)
        patch.setattr(CheckpointWriter, "begin", lambda self, write: write())  # so that no step follows
        with pytest.raises(Killed):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    os.rename(tmp_path / "kept", tmp_path / ".out.unfinished")
    (tmp_path / ".out.unfinished" / "checkpoints" / ".step-00000099.partial").mkdir()  # one that the kill has cut
    with open(tmp_path / ".out.unfinished" / "metrics.jsonl", "a") as file:
        file.write('{"kind": "dev", "step"')  # a line that the kill has cut
    found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    assert (found.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    assert without_times(FinetunedRun.open(found.path).metrics()) == without_times(
        FinetunedRun.open(whole.path).metrics()
    )


@pytest.mark.slow
def test_a_kill_while_a_finished_fine_tuning_loses_its_checkpoint_blocks_nothing(
    run, whole, task, tmp_path, monkeypatch
):
    class Killed(BaseException):
        pass

    def dies(path, **options):
        if (tmp_path / ".out.unfinished" / "results.json").exists() and path.name == ".checkpoints.removed":
            next(path.glob("*/state.json")).unlink()
            os.rename(tmp_path / ".out.unfinished", tmp_path / "kept")
            raise Killed
        own(path, **options)

    own = durable.shutil.rmtree
    monkeypatch.setattr(trials, "SAVED_EVERY", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(durable.shutil, "rmtree", dies)
        with pytest.raises(Killed):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    os.rename(tmp_path / "kept", tmp_path / ".out.unfinished")
    found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    assert (found.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    assert {file.name for file in found.path.iterdir()} == {file.name for file in whole.path.iterdir()}


def test_ctrl_c_while_test_is_scored_loses_no_training(run, whole, task, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "SAVED_EVERY", 1e9)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finetuning, "predictions_of", interrupted)
        with pytest.raises(Interrupted, match="stopped; the same command with --resume goes on"):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    with monkeypatch.context() as patch:
        patch.setattr(Fitting, "_evaluate_dev", interrupted)  # nothing is trained again
        found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    assert not list(tmp_path.glob(".*"))
    assert (found.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    with monkeypatch.context() as patch:  # nothing that could be gone on with is nothing to keep
        patch.setattr(finetuning, "run_trials", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(run, task, tmp_path / "other", config=SEVERAL, **QUIET)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_an_error_behind_a_checkpoint_keeps_it_and_one_before_leaves_nothing(run, whole, task, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "SAVED_EVERY", 0.0)

    def failing(error):
        def fail(*arguments):
            raise error

        return fail

    errors = [
        (MemoryError("no memory"), MemoryError, "no memory"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            UserError,
            "a checkpoint is kept: with more space, the same",
        ),
    ]
    for error, kind, told in errors:
        with monkeypatch.context() as patch:
            patch.setattr(finetuning, "predictions_of", failing(error))
            with pytest.raises(kind, match=told):
                finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    assert (found.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(trials, "SAVED_EVERY", 1e9)
        patch.setattr(finetuning, "predictions_of", failing(errors[1][0]))
        with pytest.raises(UserError, match="nothing of this fine-tuning was kept"):
            finetune(run, task, tmp_path / "other", config=SEVERAL, **QUIET)
    assert not list(tmp_path.glob(".*"))


def test_what_was_begun_with_other_settings_is_not_gone_on_with(run, task, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 1, 2)
        with pytest.raises(Interrupted):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    others = [
        ({"config": SEVERAL.model_copy(update={"batch": 16})}, r"setting of the training\.batch \d+, not 16"),
        ({"config": SEVERAL, "seed": 1}, "seed 0, not 1"),
        ({"config": SEVERAL, "task": task.model_copy(update={"train_rows": 100})}, r"task\.train_rows null, not 100"),
    ]
    for options, what in others:
        with pytest.raises(UserError, match=f"begun with {what}; choose another --out, or delete .*unfinished"):
            finetune(run, **{"task": task, **options}, out=tmp_path / "out", resume=True, **QUIET)
    with pytest.raises(
        UserError, match=r"stopped here after step 2; go on with --resume, or delete .*\.out\.unfinished"
    ):
        finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    assert (tmp_path / ".out.unfinished" / "checkpoints" / "step-00000002").is_dir()  # it is still there to go on with
    found = finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    with monkeypatch.context() as patch:  # what is finished is not trained again
        patch.setattr(finetuning, "run_trials", None)
        assert finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET) == found
    for options, what in others:
        with pytest.raises(UserError, match=f"begun with {what}; what is there is finished: choose another"):
            finetune(run, **{"task": task, **options}, out=tmp_path / "out", resume=True, **QUIET)
    with pytest.raises(UserError, match="holds a fine-tuned run already"):
        finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)


def test_a_checkpoint_that_is_damaged_is_told_in_one_line(run, task, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 1, 2)
        with pytest.raises(Interrupted):
            finetune(run, task, tmp_path / "out", config=SEVERAL, **QUIET)
    weights = tmp_path / ".out.unfinished" / "checkpoints" / "step-00000002" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(UserError, match=r"step-00000002: this checkpoint is damaged .*; delete it, and --resume b"):
        finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)
    shutil.rmtree(weights.parent)
    finetune(run, task, tmp_path / "out", config=SEVERAL, resume=True, **QUIET)


def test_every_rate_is_tried_with_every_number_of_epochs_and_what_it_cost_is_told(whole):
    tried = [(each.learning_rate, each.epochs) for each in whole.trials]
    assert tried == [(1e-4, 1), (3e-3, 1), (1e-4, 2), (3e-3, 2)]
    assert whole.seconds == pytest.approx(sum(each.seconds for each in whole.trials), abs=1e-3)
    best = max(whole.trials, key=lambda each: each.score)
    assert whole.scores["dev"]["accuracy"] == pytest.approx(best.score)
    saved = json.loads((whole.path / "results.json").read_text())
    assert saved["trials"] == [each.model_dump() for each in whole.trials]
    evaluations = FinetunedRun.open(whole.path).metrics()
    assert {(line["learning_rate"], line["epochs"]) for line in evaluations} == set(tried)


def test_a_fine_tuned_run_is_fine_tuned_again(fitted, task, files, tmp_path):
    brief = FinetuneConfig(learning_rate=[1e-9], epochs=1, least_steps=0, evaluations=1)
    same = finetune(fitted.path, task, tmp_path / "same", config=brief, **QUIET)
    before, after = (load_file(path / "model.safetensors") for path in (fitted.path, same.path))
    assert same.transferred_tensors == same.total_tensors == len(before)
    assert all(after[name].allclose(before[name], atol=1e-6) for name in before)
    assert same.scores["test"] == pytest.approx(fitted.scores["test"])
    rows = (files / "train.tsv").read_text().replace("\tfruit\n", "\tfood\n").replace("\ttool\n", "\tfood\n")
    (tmp_path / "train.tsv").write_text(rows)
    other = task.model_copy(update={"train": tmp_path / "train.tsv", "dev": None, "test": None})
    found = finetune(fitted.path, other, tmp_path / "other", config=brief, **QUIET)
    assert found.transferred_tensors == found.total_tensors - 2  # the map to other labels is a fresh one
    assert found.source == str(fitted.path)
    assert load_file(found.path / "model.safetensors")["pooler.weight"].allclose(before["pooler.weight"], atol=1e-6)
    several = brief.model_copy(update={"layers": 2, "pooling": "mean"})
    wider = finetune(fitted.path, task, tmp_path / "wider", config=several, **QUIET)
    assert wider.transferred_tensors == wider.total_tensors - 1  # a map of two layers' states begins anew, not its bias
    with pytest.raises(UserError, match="a run has its own tokenizer"):
        finetune(fitted.path, task, tmp_path / "out", config=brief, tokenizer=fitted.path, **QUIET)
