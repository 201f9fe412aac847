"""Signals that ask a training to stop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""Ctrl-C, `kill`, and the end of a terminal; Windows has no SIGHUP."""


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A context in which the first signal is noted in the list, for the loop to save and leave; a second one kills.

    SIGHUP comes when a terminal is closed; a process that was started to ignore it, by `nohup`, goes on.
    """
    received: list[int] = []
    previous: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for each, handler in previous.items():
            signal.signal(each, handler)

    try:
        for caught in STOPPING:
            handler = signal.getsignal(caught)
            if handler == signal.SIG_IGN and caught not in (signal.SIGINT, signal.SIGTERM):
                continue
            previous[caught] = handler
            signal.signal(caught, note)
    except ValueError:  # not in the main thread: the caller's own handling stays
        pass
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """A context that raises Ctrl-C's KeyboardInterrupt at its end, in case a library inside has caught it."""
    received: list[int] = []
    previous = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if callable(previous):
            previous(number, frame)

    try:
        signal.signal(signal.SIGINT, note)
    except ValueError:  # not in the main thread, which alone hears of it
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if received:
        raise KeyboardInterrupt
