"""Processes that work side by side: real ones, with work that takes no time."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bakeoff.errors import Interrupted, UserError
from bakeoff.workers.pool import Workers

WORK = "tests.workers.work"


def gone(process):
    """Whether a process has ended, within ten seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def heard(workers):
    """All notes and answers."""
    notes, answers = {}, {}
    while workers.unanswered:
        said = workers.hear()
        if said.note is None:
            answers[said.key] = said.answer
        else:
            notes.setdefault(said.key, []).append(said.note["at"])
    return notes, answers


def test_every_piece_of_work_is_answered_once_behind_its_notes_by_processes_that_stay_alive():
    with Workers(2, 3, [WORK]) as workers:
        for number in range(1, 8):
            workers.give(number, f"number {number}", f"{WORK}:double", {"number": number})
        notes, answers = heard(workers)
        assert notes == {number: list(range(number)) for number in range(1, 8)}
        assert {key: answer["twice"] for key, answer in answers.items()} == {n: 2 * n for n in range(1, 8)}
        first = {answer["process"] for answer in answers.values()}
        assert {answer["threads"] for answer in answers.values()} == {3}
        workers.give("again", "again", f"{WORK}:double", {"number": 1})
        assert heard(workers)[1]["again"]["process"] in {process.pid for process in workers.processes}
        assert len(first) <= 2
    assert all(process.poll() is not None for process in workers.processes)


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("refuse", UserError, r"^the number 7 is odd$"),
        ("die", UserError, r"^number 7: its process was killed; is the machine out of memory\? Give the same command"),
        ("blunder", RuntimeError, r"number 7: the process failed:\n(.|\n)*KeyError: 'a mistake'"),
    ],
)
def test_an_error_is_told_and_the_others_save_what_they_have(tmp_path, what, error, said):
    workers = Workers(2, 1)

    def run():
        with workers:
            workers.give("other", "other", f"{WORK}:until_told", {"file": str(tmp_path / "saved")})
            assert workers.hear().key == "other"  # it has begun
            workers.give(7, "number 7", f"{WORK}:{what}", {"number": 7})
            heard(workers)

    with pytest.raises(error, match=said):
        run()
    assert (tmp_path / "saved").read_text(encoding="utf-8") == "saved"
    assert all(process.poll() is not None for process in workers.processes)


def test_what_a_process_says_of_a_signal_is_an_interruption(tmp_path):
    with Workers(1, 1) as workers:
        workers.give(0, "work", f"{WORK}:until_told", {"file": str(tmp_path / "saved")})
        os.kill(workers.hear().note["process"], signal.SIGTERM)
        with pytest.raises(Interrupted, match="stopped") as stop:
            workers.hear()
    assert stop.value.signal_number == signal.SIGTERM


def test_processes_end_with_the_one_that_has_started_them(tmp_path):
    code = (
        "from bakeoff.workers.pool import Workers\n"
        "with Workers(1, 1) as workers:\n"
        f"    workers.give(0, 'work', '{WORK}:until_told', {{'file': {str(tmp_path / 'saved')!r}}})\n"
        "    print(workers.hear().note['process'], flush=True)\n"
        "    workers.hear()\n"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=path)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert gone(worker)
    assert (tmp_path / "saved").exists()
