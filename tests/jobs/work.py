"""Jobs of these tests, which take no time, or as long as nobody stops them; and a queue of them."""

import os
import signal
import time

import torch

from bakeoff.errors import Interrupted, UserError
from bakeoff.jobs.job import Job, Outcome
from bakeoff.jobs.remaining import Load
from bakeoff.jobs.runner import Runner
from bakeoff.signals import stop_signals


class Double(Job):
    """Says numbers, and ends with twice the last; the first note has what the process is."""

    number: int

    def carry_out(self, progress, note):
        note({"process": os.getpid(), "threads": torch.get_num_threads(), "device": self.device})
        for number in range(self.number):
            note({"at": number})
        return Outcome(tokens=2 * self.number)


class Refuse(Double):
    def carry_out(self, progress, note):
        raise UserError(f"the number {self.number} is odd")


class Blunder(Double):
    def carry_out(self, progress, note):
        raise KeyError("a mistake")


class Die(Double):
    def carry_out(self, progress, note):
        os.kill(os.getpid(), signal.SIGKILL)


class UntilTold(Job):
    """Works on until a signal comes, then leaves a file, as a training leaves a checkpoint."""

    def carry_out(self, progress, note):
        with stop_signals() as stopping:
            note({"process": os.getpid()})
            while not stopping:
                time.sleep(0.01)
        self.out.write_text("saved", encoding="utf-8")
        raise Interrupted("stopped", stopping[0])


def made(kind, number, out="nowhere", device="auto"):
    """A job of a kind; those that double have a number."""
    values = {"title": f"number {number}", "out": out, "seed": 0, "device": device}
    return kind(**values) if kind is UntilTold else kind(number=number, **values)


class Counting:
    """A queue of jobs that each may begin once those with half its number have ended; remembers what it hears."""

    def __init__(self, kind, numbers):
        self.waiting, self.kind = list(numbers), kind
        self.running, self.notes, self.outcomes = set(), {}, {}

    def next(self):
        ready = [number for number in self.waiting if number == 1 or number // 2 in self.outcomes]
        if not ready:
            return None
        self.waiting.remove(ready[0])
        self.running.add(ready[0])
        return ready[0], made(self.kind, ready[0])

    def load(self, key):
        return Load("number", "", key)

    def ahead(self):
        return map(self.load, self.waiting)

    def noted(self, key, note):
        assert key in self.running
        self.notes.setdefault(key, []).append(note)

    def ended(self, key, outcome):
        self.running.remove(key)
        self.outcomes[key] = outcome


def run(queue, workers):
    """Do the jobs of a queue with workers, or in this process."""
    carry_out = lambda job, progress, note: job.carry_out(progress, note)  # noqa: E731
    Runner(workers, carry_out, None, "number").run(queue, len(queue.waiting))
