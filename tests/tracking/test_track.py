"""Trackers hold what metrics.jsonl holds, each step once, and stop no training; read with their own readers."""

import json

import pytest
from tests.conftest import shrink

import bakeoff
from bakeoff.errors import UserError
from bakeoff.tracking import track as room
from bakeoff.tracking.track import numbers


def train(corpus, out, **more):
    return bakeoff.pretrain(shrink("gpt-tiny"), corpus.path, out, progress=False, device="cpu", **more)


def expected(run, kind, name="loss"):
    return [(line["step"], line[name]) for line in run.metrics() if line["kind"] == kind]


def test_numbers_of_a_line_are_named_by_kind_and_objective():
    line = {"kind": "train", "step": 3, "loss": 1.5, "losses": {"mlm": 1.0, "nsp": 0.5}, "name": "text"}
    assert numbers(line) == {"train/loss": 1.5, "train/losses/mlm": 1.0, "train/losses/nsp": 0.5}


class Memory:
    """A tracker that remembers, and fails where it is told to."""

    INSTALL, ANEW = "json", False

    def __init__(self, fails=None):
        self.sent, self.fails = [], fails

    def begin(self, training):
        if self.fails == "begin":
            raise RuntimeError("no\nserver")
        self.training = training
        return self

    def log(self, numbers, step):
        if self.fails == "log":
            raise ConnectionError("gone")
        self.sent.append((step, numbers))

    def close(self):
        if self.fails == "close":
            raise OSError("late")


@pytest.fixture
def memory(monkeypatch):
    def use(**more):
        made = Memory(**more)
        monkeypatch.setattr(room, "_module", lambda name: made)
        return made

    return use


def test_a_resumed_training_is_mirrored_without_a_step_twice(corpus, tmp_path, memory):
    first = memory()
    with bakeoff.track(tmp_path / "run", ["memory"]):
        train(corpus, tmp_path / "run", until=7)
    second = memory()
    with bakeoff.track(tmp_path / "run", ["memory"]):
        run = train(corpus, tmp_path / "run", resume=True)
    for kind in ("train", "validation"):
        key = f"{kind}/loss"
        sent = [(step, own[key]) for step, own in first.sent + second.sent if key in own]
        assert sent == expected(run, kind)
    assert first.training.name == "run"
    assert first.training.settings["recipe"]["name"] == "gpt-tiny"


@pytest.mark.parametrize("fails", ["begin", "log", "close"])
def test_a_tracker_that_fails_is_one_remark_and_stops_nothing(corpus, tmp_path, memory, fails):
    memory(fails=fails)
    said = []
    with bakeoff.track(tmp_path / "run", ["memory"], say=said.append):
        assert train(corpus, tmp_path / "run").finished
    (line,) = said
    assert line.startswith("bakeoff: --track memory failed and is left out from here on: ")
    assert "\n" not in line


def test_what_is_wrong_with_the_names_is_said_before_anything_is_trained(tmp_path, monkeypatch):
    with (
        pytest.raises(UserError, match="--track tensorbord: there is no such tracker"),
        bakeoff.track(tmp_path, ["tensorbord"]),
    ):
        raise AssertionError
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with (
        pytest.raises(UserError, match=r"needs wandb, .* run pip install .*'wandb>="),
        bakeoff.track(tmp_path, ["wandb"]),
    ):
        raise AssertionError


def test_all_runs_of_a_folder_are_mirrored_by_their_paths(corpus, tmp_path, memory):
    made = memory()
    with bakeoff.track(tmp_path / "comparison", ["memory"]):
        train(corpus, tmp_path / "comparison" / "runs" / "gpt" / "pretrain")
    assert made.training.name == "runs/gpt/pretrain"
    assert made.training.project == "comparison"


def test_tensorboard_reads_what_metrics_say_also_behind_a_resumption(corpus, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with bakeoff.track(tmp_path / "run", ["tensorboard"]):
        train(corpus, tmp_path / "run", until=7)
    with bakeoff.track(tmp_path / "run", ["tensorboard"]):
        run = train(corpus, tmp_path / "run", resume=True)
    events = EventAccumulator(str(tmp_path / "tensorboard" / "run"))
    events.Reload()
    for kind in ("train", "validation"):
        found = [(event.step, event.value) for event in events.Scalars(f"{kind}/loss")]
        assert found == [(step, pytest.approx(value, rel=1e-6)) for step, value in expected(run, kind)]


@pytest.mark.slow  # its import and its end take long
def test_trackio_keeps_them_on_this_machine(corpus, tmp_path, monkeypatch):
    pytest.importorskip("trackio")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "kept"))
    program = _program(corpus, tmp_path, "trackio")
    _run(program)
    import sqlite3

    (database,) = (tmp_path / "kept").glob("*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select step, metrics from metrics order by id").fetchall()
    found = [(step, json.loads(own)["train/loss"]) for step, own in rows if "train/loss" in json.loads(own)]
    run = bakeoff.Run(tmp_path / "run")
    assert found == expected(run, "train")


@pytest.mark.slow  # its import and its end take long
def test_wandb_is_offline_where_nobody_is_logged_in(corpus, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    _run(_program(corpus, tmp_path, "wandb"))
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    (file,) = folder.glob("*.wandb")
    assert b"train/loss" in file.read_bytes()


def _program(corpus, tmp_path, name):
    return (
        "import bakeoff; from tests.conftest import shrink\n"
        f"with bakeoff.track({str(tmp_path / 'run')!r}, [{name!r}]):\n"
        f"    bakeoff.pretrain(shrink('gpt-tiny'), {str(corpus.path)!r}, {str(tmp_path / 'run')!r}, progress=False, "
        "device='cpu')\n"
    )


def _run(program):
    """In a process of its own, whose libraries may leave threads and warnings behind."""
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr
