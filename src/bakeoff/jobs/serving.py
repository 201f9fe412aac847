"""The main loop of a worker process, see `bakeoff.jobs.processes`."""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from threading import Thread

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.jobs.job import Note, job_of
from bakeoff.signals import note_signals, release_signals

_LOOK = 1.0
"""Seconds between checks whether the parent process lives."""

_IMPORTED = ("bakeoff.training.pretrain", "bakeoff.tasks.finetune")
"""Modules that a process imports when it starts, because their imports take seconds."""


def serve() -> None:
    """Do the jobs that come from standard input until it ends."""
    threads, device = int(sys.argv[1]), sys.argv[2]
    note_signals()  # a training saves and leaves; any other job is left to the parent
    release_signals()
    source = os.fdopen(os.dup(0), encoding="utf-8")
    target = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of libraries must not mix with answers
    Thread(target=_stop_without, args=(os.getppid(),), daemon=True).start()

    def say(values: Note) -> None:
        target.write(json.dumps(values) + "\n")
        target.flush()

    with contextlib.suppress(BrokenPipeError):
        for module in _IMPORTED:
            import_module(module)
        torch = import_module("torch")
        torch.set_num_threads(threads)  # overrides environment variables
        if device.startswith("cuda:"):
            torch.cuda.set_device(device)  # for what is asked of "the" GPU
        for line in source:
            say(said_of(json.loads(line), device, lambda note: say({"note": note})))


def _stop_without(parent: int) -> None:
    """Stop this process once the parent was killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    while True:  # a training before its first step ignores it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LOOK)


def said_of(message: Note, device: str, note: Callable[[Note], None]) -> Note:
    """Do the job of a message; the last word on it, for `worker_process.outcome_of`.

    Args:
        message: the job, see `Job.message`.
        device: the device of the job.
        note: a function that takes the notes on the way.
    """
    try:
        return {"outcome": job_of(message, device).carry_out(note, note).model_dump(mode="json")}
    except Interrupted as stop:
        return {"interrupted": stop.signal_number, "message": str(stop)}
    except DiskFull as error:
        return {"full": error.problem}
    except UserError as error:
        return {"error": str(error)}
    except BrokenPipeError:  # the parent was killed
        raise
    except Exception:
        return {"failed": traceback.format_exc()}
