"""What the processes of these tests are asked to do."""

import os
import signal
import time
from pathlib import Path

import torch

from bakeoff.errors import Interrupted, UserError
from bakeoff.signals import stop_signals


def double(values, note):
    for number in range(values["number"]):
        note({"at": number})
    return {"twice": 2 * values["number"], "process": os.getpid(), "threads": torch.get_num_threads()}


def refuse(values, note):
    raise UserError(f"the number {values['number']} is odd")


def blunder(values, note):
    raise KeyError("a mistake")


def die(values, note):
    os.kill(os.getpid(), signal.SIGKILL)


def until_told(values, note):
    """Work on until a signal comes, then leave a file, as a training leaves a checkpoint."""
    with stop_signals() as stopping:
        note({"process": os.getpid()})
        while not stopping:
            time.sleep(0.01)
    Path(values["file"]).write_text("saved", encoding="utf-8")
    raise Interrupted("stopped", stopping[0])
