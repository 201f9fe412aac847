"""Encoding on all cores: jobs go to processes of Python's pool, and their results come back in order.

Jobs of encoding are short and leave nothing on the disk, so that a stopped one is simply done again; work that has to
be saved is a job of `bakeoff.jobs`.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from types import ModuleType
from typing import Any, TypeVar

from bakeoff.errors import UserError
from bakeoff.machine.capacity import usable_cores
from bakeoff.signals import ignore_signals, release_signals, signals_held_back
from bakeoff.tokenizer.tokenizer import Tokenizer

_MOST_WORKERS = 4  # the reader feeds no more, and each takes about 90 MB
_SMALL = 1 << 22  # bytes on disk below which starting workers takes longer than they save

J = TypeVar("J")
"""Type of a job, a text to encode in one go."""
R = TypeVar("R")
"""Type of a job's result."""


class WorkerDied(UserError):
    """Error: a worker process was killed, most likely for memory."""


def encode_jobs(
    tokenizer: Tokenizer, jobs: Iterable[J], workers: int, encode: Callable[[Tokenizer, J], R]
) -> Iterator[R]:
    """Encode jobs and yield the results in the order of the jobs, the same for any number of workers.

    Args:
        tokenizer: the tokenizer.
        jobs: the jobs, read as the workers take them; at most two for each worker are held.
        workers: number of processes; 0 encodes in this one.
        encode: the function from the tokenizer and a job to the result; a function of a module, or a `partial` of one,
            so that it can be sent.

    Raises:
        WorkerDied: a worker was killed.
    """
    if workers == 0:
        for job in jobs:
            yield encode(tokenizer, job)
        return
    waiting: deque[Future[R]] = deque()
    with _starting():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (tokenizer.to_string(), encode))
    try:
        for job in jobs:
            with _starting():  # the pool starts a process where none is idle
                waiting.append(pool.submit(_work, job))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise WorkerDied(
            "a process that encodes text died; is the machine out of memory? Give the same command again"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def workers_for(asked: int | None, size: int | None) -> int:
    """The number of processes that encode a text; 0: this process encodes.

    Args:
        asked: the number that the user asked for; None: no number.
        size: bytes of the text on disk; None: unknown, but large.
    """
    if asked is not None:
        return asked
    if size is not None and size < _SMALL:
        return 0
    return min(usable_cores(), _MOST_WORKERS)


@contextmanager
def _starting() -> Iterator[None]:
    """A context in which processes may start: without the caller's main module, and with signals held back.

    `multiprocessing` would import that module in each process, and so run a script that calls `prepare` once more. The
    signals are held back until the process ignores them.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with signals_held_back():
            yield
    finally:
        sys.modules["__main__"] = main


_encoder: Callable[[Any], Any]
"""In a process of the pool: the function from a job to its result."""


def _begin(tokenizer: str, encode: Callable[[Tokenizer, Any], Any]) -> None:
    """Make a process of the pool ready: it ends with the process that has started it, and not by a signal before."""
    global _encoder
    ignore_signals()  # they reach the whole group
    release_signals()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.dup2(2, 1)  # what a library prints is no result of the command
    Thread(target=_end_with_parent, daemon=True).start()
    worker_tokenizer = Tokenizer.from_string(tokenizer)
    _encoder = lambda job: encode(worker_tokenizer, job)  # noqa: E731


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(job: Any) -> Any:
    return _encoder(job)
