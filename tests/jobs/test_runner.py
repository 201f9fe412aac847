"""The runner with workers that are threads: all that another machine has to implement."""

import random

import pytest
from tests.jobs.threads import Threads
from tests.jobs.work import Counting, Double, Refuse, run

from bakeoff.errors import UserError
from bakeoff.jobs.job import BEGUN, Outcome
from bakeoff.jobs.remaining import Load, Remaining
from bakeoff.jobs.runner import Runner


def without_devices(queue):
    return {key: notes[1:] for key, notes in queue.notes.items()}


@pytest.mark.parametrize("devices", [["cpu"], ["cuda:0", "cuda:1"], [f"cuda:{index}" for index in range(5)]])
def test_whoever_does_the_jobs_all_that_they_say_and_give_is_the_same(devices):
    numbers = random.Random(0).sample(range(1, 20), 19)
    here, there = Counting(Double, numbers), Counting(Double, numbers)
    run(here, None)
    run(there, Threads(devices))
    assert here.outcomes == there.outcomes == {number: Outcome(tokens=2 * number) for number in numbers}
    assert without_devices(here) == without_devices(there)
    assert {notes[0]["device"] for notes in here.notes.values()} == {"auto"}
    used = [notes[0]["device"] for notes in there.notes.values()]
    assert set(used) <= {*devices}
    assert len(devices) == 1 or len(set(used)) > 1


@pytest.mark.parametrize("workers", [None, Threads(["cpu", "cpu"])])
def test_an_error_of_a_job_ends_the_run(workers):
    queue = Counting(Refuse, [1, 2, 3])
    with pytest.raises(UserError, match=r"^the number 1 is odd$"):
        run(queue, workers)
    assert (queue.running, queue.waiting) == ({1}, [2, 3])


def test_a_job_that_has_to_begin_anew_is_not_counted_as_done():
    class Again(Counting):
        def ended(self, key, outcome):
            super().ended(key, outcome)
            if key == 1 and self.outcomes.pop(1).work_seconds:
                self.waiting.append(1)

    class Slow(Threads):
        def wait(self, noted):
            key, outcome = super().wait(noted)
            self.slow = outcome.model_copy(update={"work_seconds": None if hasattr(self, "slow") else 2.0})
            return key, self.slow

    queue = Again(Double, [1])
    run(queue, Slow(["cpu"]))
    assert len(queue.notes[1]) == 4
    assert queue.waiting == []


def test_lines_say_what_is_left_for_all_without_the_time_for_which_a_job_waited(monkeypatch):
    now, lines = [0.0], []
    monkeypatch.setattr("bakeoff.display.pace.LINE_SECONDS", -1)

    class Slow(Threads):
        """A machine that is free after a hundred seconds, and does a job in ten."""

        def wait(self, noted):
            now[0] += 100
            for key in queue.running:
                noted(key, BEGUN)
            now[0] += 10

            def told(key, note):
                noted(key, {"done": 1, "total": 100, "figures": "loss 1"} if "at" in note else note)

            return super().wait(told)

    queue = Counting(Double, [1, 2, 4])
    queue.load = lambda key: Load("number", "", 1)
    runner = Runner(Slow(["cpu"]), None, lines.append, "number")
    runner.remaining = Remaining(lambda: now[0])
    runner.run(queue, 3)
    whole = [line for line in lines if line.endswith("left for all")]
    assert whole[0] == "1 of 3 numbers done, about 20 s left for all"
    assert whole[-1] == "2 of 3 numbers done, about 10 s left for all"
    assert BEGUN not in [note for notes in queue.notes.values() for note in notes]
