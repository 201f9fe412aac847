"""Processes that do jobs side by side: real ones, with jobs that take no time."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.jobs.work import Blunder, Counting, Die, Double, Refuse, UntilTold, made, run

from bakeoff.errors import Interrupted, UserError
from bakeoff.jobs.processes import Processes


def gone(process):
    """Whether a process has ended, within ten seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def first_note(workers):
    """Wait until a job has said something."""

    class Said(Exception):
        pass

    def raising(key, note):
        raise Said(note)

    with pytest.raises(Said) as said:
        workers.wait(raising)
    return said.value.args[0]


def test_every_job_ends_once_behind_its_notes_in_processes_that_stay_alive_each_with_its_device():
    queue = Counting(Double, range(1, 8))
    with Processes(["one", "two"], 3) as workers:
        run(queue, workers)
        assert {key: outcome.tokens for key, outcome in queue.outcomes.items()} == {n: 2 * n for n in range(1, 8)}
        said = {key: [note["at"] for note in notes[1:]] for key, notes in queue.notes.items()}
        assert said == {number: list(range(number)) for number in range(1, 8)}
        first = {notes[0]["process"]: notes[0] for notes in queue.notes.values()}
        assert {each["threads"] for each in first.values()} == {3}
        assert sorted(each["device"] for each in first.values()) in (["one"], ["two"], ["one", "two"])
        assert set(first) <= {each.process.pid for each in workers.processes}
    assert not any(each.alive for each in workers.processes)


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        pytest.param(Refuse, UserError, r"^the number 7 is odd$", marks=pytest.mark.slow),
        pytest.param(
            *(
                Die,
                UserError,
                r"^number 7: its process was killed; is the machine out of memory\? Give the same command",
            ),
            marks=pytest.mark.slow,
        ),
        (Blunder, RuntimeError, r"number 7: the process failed:\n(.|\n)*KeyError: 'a mistake'"),
    ],
)
def test_an_error_is_told_and_the_others_save_what_they_have(tmp_path, what, error, said):
    workers = Processes(["cpu", "cpu"], 1)

    def beside_another():
        with workers:
            workers.begin("other", made(UntilTold, 1, tmp_path / "saved"))
            first_note(workers)
            workers.begin(7, made(what, 7))
            workers.wait(lambda key, note: None)

    with pytest.raises(error, match=said):
        beside_another()
    assert (tmp_path / "saved").read_text(encoding="utf-8") == "saved"
    assert not any(each.alive for each in workers.processes)


@pytest.mark.slow
def test_what_a_process_says_of_a_signal_is_an_interruption(tmp_path):
    with Processes(["cpu"], 1) as workers:
        workers.begin(0, made(UntilTold, 1, tmp_path / "saved"))
        os.kill(first_note(workers)["process"], signal.SIGTERM)
        with pytest.raises(Interrupted, match="stopped") as stop:
            workers.wait(lambda key, note: None)
    assert stop.value.signal_number == signal.SIGTERM


@pytest.mark.slow
def test_processes_end_with_the_one_that_has_started_them(tmp_path):
    code = (
        "from bakeoff.jobs.processes import Processes\n"
        "from tests.jobs.work import UntilTold, made\n"
        "with Processes(['cpu'], 1) as workers:\n"
        f"    workers.begin(0, made(UntilTold, 1, {str(tmp_path / 'saved')!r}))\n"
        "    workers.wait(lambda key, note: print(note['process'], flush=True))\n"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=path)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert gone(worker)
    assert (tmp_path / "saved").exists()
