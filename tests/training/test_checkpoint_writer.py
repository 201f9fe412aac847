"""Checkpoints are written while the training goes on, and are what they were at their step."""

import errno
import os
import threading
import time

import pytest
from tests.conftest import PLAIN, shrink

from bakeoff.full_disk import DiskFull
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.signals import go_on
from bakeoff.trainer import checkpoint as checkpoint_module
from bakeoff.trainer import loop, save_plan
from bakeoff.trainer.checkpoint import Checkpoint
from bakeoff.trainer.checkpoint_writer import CheckpointWriter
from bakeoff.training.pretrain import pretrain

SECONDS = 30
"""More than any event here takes."""


@pytest.fixture(autouse=True)
def after_the_first_step(monkeypatch):
    monkeypatch.setattr(save_plan, "FIRST_CHECKPOINT", 0.0)


def train(corpus, out, **changes):
    changes = {**PLAIN, "training.budget": {"steps": 6}, "training.checkpoint_minutes": 60, **changes}
    return pretrain(shrink("bert-tiny", **changes), corpus.path, out, progress=False, device="cpu")


def contents(folder):
    """The bytes of the tensors of each checkpoint."""
    return {
        (checkpoint.name, path.name): path.read_bytes()
        for checkpoint in list_checkpoints(folder / "checkpoints")
        for path in checkpoint.glob("*.safetensors")
    }


class Late:
    """Holds back the writing of checkpoints until a number of steps has been taken."""

    def __init__(self, monkeypatch, steps):
        self.steps, self.taken, self.free = steps, 0, threading.Event()
        self.at = []
        write, optimize = Checkpoint.write, loop.optimize

        def wait(checkpoint):
            assert self.free.wait(SECONDS)
            write(checkpoint)
            self.at.append((checkpoint_step(checkpoint.path), self.taken))

        def count(*arguments):
            figures = optimize(*arguments)
            self.taken += 1
            if self.taken == self.steps:
                self.free.set()
            return figures

        monkeypatch.setattr(Checkpoint, "write", wait)
        monkeypatch.setattr(loop, "optimize", count)


@pytest.mark.parametrize("average", [0.0, 0.5])
def test_what_is_written_late_is_what_it_was_at_its_step(average, corpus, tmp_path, monkeypatch):
    changes = {"training.running_average": average}
    monkeypatch.setattr(Run, "finish", lambda *_: None)  # which removes them
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "ROOM", 1e12)  # no memory for copies
        patch.setattr(checkpoint_module, "KEPT", 100)
        train(corpus, tmp_path / "waiting", **{**changes, "training.checkpoint_minutes": 1e-9})
    late = Late(monkeypatch, 4)
    train(corpus, tmp_path / "beside", **changes)
    ((begun, ended),) = late.at
    assert begun == 1
    assert ended >= 4  # a step more may have been taken before the writer woke
    expected, made = contents(tmp_path / "waiting"), contents(tmp_path / "beside")
    assert len(made) == (3 if average else 2)
    assert made == {key: expected[key] for key in made}


def test_a_disk_that_is_full_ends_the_training_at_the_next_step(corpus, tmp_path, monkeypatch):
    steps, optimize = [], loop.optimize

    def full(tensors, path):
        path.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def count(unit, parts, step):
        for thread in threading.enumerate():
            if thread.name == "bakeoff-checkpoint":
                thread.join(SECONDS)
        steps.append(step)
        return optimize(unit, parts, step)

    monkeypatch.setattr(checkpoint_module, "save_tensors", full)
    monkeypatch.setattr(loop, "optimize", count)
    with pytest.raises(DiskFull, match="No space left on device; no checkpoint was kept"):
        train(corpus, tmp_path / "run")
    assert steps == [0, 1]  # the first is followed by the checkpoint, the second by the error
    assert not list(tmp_path.rglob("*.partial"))


def test_one_write_at_a_time_and_all_before_the_end():
    running, most, done = [], [], []

    def write(name):
        running.append(name)
        most.append(len(running))
        threading.Event().wait(0.01)
        running.remove(name)
        done.append(name)

    with CheckpointWriter() as writer:
        for name in range(4):
            writer.begin(lambda name=name: write(name))
            assert name == 0 or name - 1 in done
    assert done == [0, 1, 2, 3]
    assert max(most) == 1


def fail():
    raise OSError("the disk is gone")


@pytest.mark.parametrize("ask", ["finish", "check", "begin"])
def test_a_write_that_failed_is_an_error_once(ask):
    writer = CheckpointWriter()
    writer.begin(fail)
    for thread in threading.enumerate():
        if thread.name == "bakeoff-checkpoint":
            thread.join(SECONDS)
    with pytest.raises(OSError, match="the disk is gone"):
        getattr(writer, ask)(*([fail] if ask == "begin" else []))
    writer.finish()


def test_after_an_error_of_the_training_the_write_is_finished():
    done, writer = threading.Event(), CheckpointWriter()

    def failing(write):
        with writer:
            writer.begin(write)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing(lambda: (threading.Event().wait(0.02), done.set()))
    assert done.is_set()
    with pytest.raises(ZeroDivisionError):  # the first error counts
        failing(fail)


def test_only_an_impatient_interruption_gives_it_up():
    begun, interrupted, files, writer = threading.Event(), threading.Event(), [], CheckpointWriter()

    def write():
        for number in range(3):
            files.append(number)
            begun.set()
            assert interrupted.wait(SECONDS)
            threading.Event().wait(0.05)  # until the other thread waits
            go_on()

    def impatient():
        with writer:
            writer.begin(write)
            assert begun.wait(SECONDS)
            interrupted.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        impatient()
    assert files == [0]
    with writer:
        writer.begin(lambda: files.append("again"))
    assert files == [0, "again"]


def test_the_time_of_writing_is_not_counted_as_work_of_the_training():
    def work():
        while time.thread_time() < 0.02:
            pass
        go_on()

    with CheckpointWriter() as writer:
        writer.begin(work)
    assert 0.02 < writer.work_seconds < 1
