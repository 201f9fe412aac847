"""Signals that ask to stop: Ctrl-C, `kill`, a closed terminal, a time that ends; and work that another thread may end.

However many signals come, what is being saved is saved. `timeout` signals a process and then its group, a closed
terminal sends SIGHUP and SIGINT together, people press Ctrl-C twice. So only the first signal counts, and a Ctrl-C that
comes `PATIENCE` seconds after another one: who presses it does not want to wait for what is saved.
"""

import _thread
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

STOPPING = [
    signal.SIGINT,
    signal.SIGTERM,
    *(getattr(signal, name) for name in ("SIGHUP", "SIGUSR1") if hasattr(signal, name)),
]
"""Ctrl-C, `kill`, the end of a terminal, and the warning of a queue of jobs; Windows lacks the last two."""

PATIENCE = 3.0
"""Seconds after a Ctrl-C from which another one ends the work without saving."""

_AGAIN = 0.05
"""Seconds after which an interruption that was lost in a callback is raised again."""


class _Answer:
    """The answer of this process to signals; there is one, because a process has one handler for each signal."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.noting: list[list[int]] = []
        self.pressed: float | None = None
        self.lost = False
        self.raising = True
        self.program = False

    def anew(self) -> None:
        """Forget the signals so far, so that the next one is a first one."""
        self.received, self.pressed, self.lost = [], None, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        first = not self.received
        self.received.append(number)
        now = time.monotonic()
        once_more = number == signal.SIGINT and self.pressed is not None and now - self.pressed >= PATIENCE
        if number == signal.SIGINT and (self.pressed is None or once_more):
            self.pressed = now
        if number == getattr(signal, "SIGHUP", None):
            leave_closed_terminal()
        lost, self.lost = self.lost, False
        if self.noting:
            self.noting[-1].append(number)
            if self.raising and first and number == signal.SIGINT:
                tell_of_another()
        if self.raising and (once_more or ((first or lost) and not self.noting)):
            raise KeyboardInterrupt


_answer = _Answer()


def answer_signals() -> None:
    """From now on the first signal raises KeyboardInterrupt, and others are ignored; for a program of its own.

    A signal that the program was started to ignore, as `nohup` does, stays ignored.
    """
    for each in STOPPING:
        if signal.getsignal(each) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(each, _answer)
    sys.unraisablehook = _unraisable
    _answer.program = True


def stop_answering() -> None:
    """Ignore signals from now on: the work is over, and Python's own end takes handlers, but not this, back."""
    _answer.raising = False
    for each in STOPPING:
        if signal.getsignal(each) is _answer:
            signal.signal(each, signal.SIG_IGN)
    # Where an interruption went through code that runs a text, an import of dataclasses say, Python remembers it and
    # ends by SIGINT whatever the exit status is, unless another text is run.
    exec("")


def note_signals() -> None:
    """From now on signals are ignored outside of `stop_signals`; for a process whose parent ends it."""
    _answer.raising = False
    for each in STOPPING:
        if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN:  # keep the SIGHUP that `nohup` ignores
            signal.signal(each, _answer)


def ignore_signals() -> None:
    """Ignore the signals that stop a program, in a process that its parent ends."""
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)


def signal_received() -> int | None:
    """The first signal since `answer_signals`, or since `ask_anew`; None: there was none, or they are not answered."""
    return _answer.received[0] if _answer.program and _answer.received else None


def ask_anew() -> None:
    """Let the next signal interrupt although one has come: what it asked for is done."""
    _answer.anew()


def tell_of_another() -> None:
    """Say on a terminal what another Ctrl-C would do."""
    if os.isatty(2):  # written at once, because a handler may interrupt another print
        line = f"\nstopping; another Ctrl-C, from {PATIENCE:g} seconds on, ends without saving\n"
        os.write(2, line.encode())


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A context in which signals are noted in the list, for the work inside to save and leave.

    A Ctrl-C that comes `PATIENCE` seconds after another one raises KeyboardInterrupt. Signals of a context within
    another one are noted in both. SIGHUP comes when a terminal is closed; a process that was started to ignore it, by
    `nohup`, goes on.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # the caller's own handling stays
        yield received
        return
    previous: dict[signal.Signals, Any] = {}
    for caught in STOPPING:
        handler = signal.getsignal(caught)
        if handler is _answer or (handler == signal.SIG_IGN and caught not in (signal.SIGINT, signal.SIGTERM)):
            continue
        previous[caught] = handler
    if signal.SIGTERM in previous:
        _answer.anew()
    _answer.noting.append(received)
    try:
        for caught in previous:
            signal.signal(caught, _answer)
        yield received
    finally:
        _answer.noting.pop()
        if _answer.noting:
            _answer.noting[-1].extend(received)
        for each, handler in previous.items():
            signal.signal(each, handler)


def are_noted() -> bool:
    """Whether this is inside of `stop_signals`, so that whoever opened it hears of a signal."""
    return bool(_answer.noting)


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """A context that raises the KeyboardInterrupt of a signal at its end, in case a library inside has caught it."""
    if _answer.program:
        yield
        if signal_received() is not None:
            raise KeyboardInterrupt
        return
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


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Block the signals that stop a program; a process that is started meanwhile inherits the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def release_signals() -> None:
    """End the block that this process has inherited from `signals_held_back`."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def _unraisable(problem: Any) -> None:
    """Raise an interruption again that came in a callback, where no exception gets through."""
    if issubclass(problem.exc_type, KeyboardInterrupt) and _answer.received:
        _answer.lost = True
        again = threading.Timer(_AGAIN, _thread.interrupt_main)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(problem)


def leave_closed_terminal() -> None:
    """Write to nowhere instead of a terminal that was closed, where each write would be an error."""
    try:
        import termios
    except ImportError:  # not a POSIX system
        return
    for descriptor in (0, 1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, descriptor)
                os.close(nothing)


_LOOK: ContextVar[Callable[[], None] | None] = ContextVar("look", default=None)


@contextmanager
def stopped_by(look: Callable[[], None]) -> Iterator[None]:
    """A context in which `go_on` calls a function of this thread's own, which raises an error to end the work."""
    before = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(before)


def go_on() -> None:
    """Go on, unless the work is to end: then the error of `stopped_by`'s function is raised."""
    look = _LOOK.get()
    if look is not None:
        look()
