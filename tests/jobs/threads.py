"""Workers that are threads: all that workers on another machine have to implement."""

import json
from queue import SimpleQueue
from threading import Thread

from bakeoff.errors import UserError
from bakeoff.jobs.job import Outcome, job_of


class Threads:
    """Workers in threads. All that goes to them and comes from them is JSON, as between machines.

    Args:
        devices: the device of each slot.
        carry_out: the function that does a job; left out: the job itself does.
    """

    threads = 1

    def __init__(self, devices, carry_out=lambda job, progress, note: job.carry_out(progress, note)):
        self.free, self.slots, self.carry_out, self.said = list(devices), len(devices), carry_out, SimpleQueue()

    def begin(self, key, job):
        assert self.free, "more jobs than slots"
        Thread(target=self._do, args=(key, self.free.pop(0), json.dumps(job.message()))).start()

    def wait(self, noted):
        while True:
            key, device, kind, text = self.said.get()
            if kind == "note":
                noted(key, json.loads(text))
                continue
            self.free.append(device)
            if kind == "error":
                raise UserError(text)
            return key, Outcome.parse(json.loads(text), "an outcome")

    def _do(self, key, device, message):
        def note(each):
            self.said.put((key, device, "note", json.dumps(each)))

        try:
            outcome = self.carry_out(job_of(json.loads(message), device), note, note)
            self.said.put((key, device, "outcome", outcome.model_dump_json()))
        except UserError as error:
            self.said.put((key, device, "error", str(error)))
