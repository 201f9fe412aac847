"""The same processes, seen from within."""

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
from bakeoff.signals import STOPPING

_LOOK = 1.0
"""Seconds between two looks at whether the process that has started this one still lives."""

Note = Callable[[dict[str, Any]], None]


def serve() -> None:
    """Do what standard input asks for until it ends; see `bakeoff.workers.pool`."""
    _, threads, *modules = sys.argv
    # A training hears them all the same, saves and leaves; whatever else a worker does is left to its parent. They are
    # not ignored: Python complains of one that came just before a training gave its handler back.
    for each in STOPPING:
        if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN:  # `nohup` keeps SIGHUP away
            signal.signal(each, lambda number, frame: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    source = os.fdopen(os.dup(0), encoding="utf-8")
    target = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    Thread(target=_stop_without, args=(os.getppid(),), daemon=True).start()

    def say(values: dict[str, Any]) -> None:
        target.write(json.dumps(values) + "\n")
        target.flush()

    with contextlib.suppress(BrokenPipeError):
        for module in modules:
            import_module(module)
        import_module("torch").set_num_threads(int(threads))  # whatever the system's variables say
        for line in source:
            asked = json.loads(line)
            say(_answer(asked["call"], asked["values"], lambda note: say({"note": note})))


def _stop_without(parent: int) -> None:
    """Stop what is done once the parent was killed: nobody waits for it."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    while True:  # one that has not begun its steps yet does not hear it
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
