"""Signals that ask a training to stop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Within it the first SIGINT or SIGTERM is noted in the list, for the loop to save and leave; a second kills."""
    received: list[int] = []
    previous: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for each, handler in previous.items():
            signal.signal(each, handler)

    try:
        for caught in (signal.SIGINT, signal.SIGTERM):
            previous[caught] = signal.getsignal(caught)
            signal.signal(caught, note)
    except ValueError:  # not in the main thread: the caller's own handling stays
        pass
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
