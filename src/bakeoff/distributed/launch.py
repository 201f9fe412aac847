"""The processes that torchrun starts become those of one training, and one that fails ends all, with one line."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import count
from typing import NamedTuple

import torch
import torch.distributed as torch_processes
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from bakeoff.display.printing import PRINTING
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import Interrupted, UserError
from bakeoff.machine.launch import started_together

PATIENCE = timedelta(hours=1)
"""The longest time that a process waits for another one, which may be writing a large checkpoint."""

LOOK_EVERY = 1.0
"""Seconds between two looks at whether another process has failed."""

GRACE = 5.0
"""Seconds in which a process ends by itself after another one has failed; one that waits for a device may not hear."""

_FAILED = "failed"
"""The key, in the store that torchrun keeps for its processes, of the number of processes that have failed."""


class _Joined(NamedTuple):
    """What this process has joined."""

    processes: Processes
    store: Store


_TIMES = count()
"""Numbers for the times that this process joins others, in a program that trains more than once."""

_joined: list[_Joined] = []
"""The processes that this one has joined; one entry at most."""


@contextmanager
def together() -> Iterator[Processes]:
    """The processes that torchrun has started, this one among them; a process that was started alone is `ALONE`.

    Whatever ends one of them ends all: the first to fail raises its error, and the others leave silently, by
    SystemExit. A context within another one is the same.

    Raises:
        LostProcess: another process has ended without a word.
    """
    if _joined:
        yield _joined[0].processes
        return
    if not started_together():
        yield ALONE
        return
    whole, rank, size = _meeting()
    # torchrun may keep the store when it starts processes anew, with all that those before have left in it.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)
    store = PrefixStore(f"bakeoff {attempt} {next(_TIMES)}", whole)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    torch_processes.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    PRINTING.silent = rank > 0  # also in a program of the user, which does not begin in `bakeoff.cli`
    processes = Processes(rank, size, int(os.environ.get("LOCAL_RANK", 0)))
    _joined.append(_Joined(processes, store))
    over = threading.Event()
    threading.Thread(target=_leave_with_others, args=(store, over), name="bakeoff-others", daemon=True).start()
    try:
        yield processes
    except SystemExit:
        raise
    except BaseException as error:
        if _is_first_to_fail(store):
            PRINTING.silent = False
            if isinstance(error, KeyboardInterrupt) and isinstance(error.__context__, UserError):
                raise error.__context__ from None  # whatever ended this process, torchrun has sent a signal since
            raise
        status = 128 + error.signal_number if isinstance(error, Interrupted) else 2
        raise SystemExit(status) from None
    else:
        processes.wait()  # or the one that keeps the store might leave before the others
        torch_processes.destroy_process_group()
    finally:
        over.set()
        _joined.clear()


@cache  # the store stays open: the first process may be the one that keeps it for all
def _meeting() -> tuple[Store, int, int]:
    """The store of the processes that torchrun has started, the number of this one, and how many they are."""
    met: tuple[Store, int, int] = next(rendezvous("env://", timeout=PATIENCE))
    return met


def _is_first_to_fail(store: Store) -> bool:
    """Note that this process has failed; whether no other one had, so that this one says why."""
    try:
        return bool(store.add(_FAILED, 1) == 1)
    except RuntimeError:  # the store is gone, with the process that has started all
        return True


def _leave_with_others(store: Store, over: threading.Event) -> None:
    """End this process some seconds after another one has failed, if it still waits then."""
    while not over.wait(LOOK_EVERY):
        try:
            failed = store.check([_FAILED])
        except RuntimeError:
            return
        if failed and not over.wait(GRACE):
            os._exit(2)
