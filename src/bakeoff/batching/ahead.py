"""Batches made in a background thread, while the model learns from earlier ones."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Made = TypeVar("Made")


def ahead(make: Callable[[int], Made], start: int, stop: int, depth: int = 4) -> Iterator[Made]:
    """Results of `make(start)`, ..., `make(stop - 1)`, made in a thread that stays up to `depth` results ahead.

    An exception in the thread is raised here; leaving the loop early stops the thread after the result in progress.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        coming: deque[Future[Made]] = deque()
        try:
            for step in range(start, stop):
                while len(coming) <= depth and step + len(coming) < stop:
                    coming.append(thread.submit(make, step + len(coming)))
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()
