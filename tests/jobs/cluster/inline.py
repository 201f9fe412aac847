"""Worker processes that are none, and a job that waits."""

import json
import threading

from tests.jobs.work import Double

from bakeoff.errors import Interrupted
from bakeoff.jobs.job import Outcome
from bakeoff.jobs.serving import said_of

ONE = {"CPU": 1}
"""The resources of a machine with one core."""

STOPPED = threading.Event()
"""Set once a job was asked to stop."""


class Inline:
    """A worker process that is no process: what goes in and comes out is JSON all the same."""

    alive = True

    def __init__(self, device, threads):
        self.device, self.asked = device, threading.Event()

    def do(self, message, noted):
        here = lambda note: noted(json.loads(json.dumps(note)))  # noqa: E731
        return json.loads(json.dumps(said_of(json.loads(json.dumps(message)), self.device, here)))

    def ask_to_stop(self):
        self.asked.set()
        STOPPED.set()

    def end(self):
        self.alive = False


class Waiting(Double):
    """A job that says that it has begun, and works until its machine, or everything, is told to stop."""

    def carry_out(self, progress, note):
        note({"done": 1, "total": 9, "figures": ""})
        while not STOPPED.wait(0.01):
            if self.out.with_suffix(".go").exists():
                return Outcome(tokens=self.number)
        raise Interrupted("stopped", 15)
