"""The main loop of a worker process, see `bakeoff.workers.pool`."""

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
from typing import Any

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.signals import note_signals, release_signals

_LOOK = 1.0
"""Seconds between checks whether the parent process lives."""

Note = Callable[[dict[str, Any]], None]


def serve() -> None:
    """Do the jobs that come from standard input until it ends."""
    _, threads, *modules = sys.argv
    note_signals()  # a training saves and leaves; any other job is left to the parent
    release_signals()
    source = os.fdopen(os.dup(0), encoding="utf-8")
    target = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of libraries must not mix with answers
    Thread(target=_stop_without, args=(os.getppid(),), daemon=True).start()

    def say(values: dict[str, Any]) -> None:
        target.write(json.dumps(values) + "\n")
        target.flush()

    with contextlib.suppress(BrokenPipeError):
        for module in modules:
            import_module(module)
        import_module("torch").set_num_threads(int(threads))  # overrides environment variables
        for line in source:
            asked = json.loads(line)
            say(_answer(asked["call"], asked["values"], lambda note: say({"note": note})))


def _stop_without(parent: int) -> None:
    """Stop this process once the parent was killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    while True:  # a training before its first step ignores it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LOOK)


def _answer(call: str, values: dict[str, Any], note: Note) -> dict[str, Any]:
    module, _, name = call.partition(":")
    try:
        return {"answer": getattr(import_module(module), name)(values, note)}
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
