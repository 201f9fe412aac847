"""Printing, with control characters of names, texts and errors escaped before they reach a terminal.

Everything that Bakeoff prints goes through this file or through `console.py`, and so obeys `--quiet` and `--log`.
"""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from bakeoff.display.printing import PRINTING
from bakeoff.display.text import visible, visible_json
from bakeoff.signals import leave_closed_terminal


def show(text: str = "") -> None:
    """Print a text for people on standard output."""
    if not PRINTING.silent:
        print(visible(text, "\n\t"))
    PRINTING.record(text)


def write(text: str) -> None:
    """Print a line for programs on standard output: unchanged, or with escapes on a terminal."""
    if not PRINTING.silent:
        print(visible(text, "\n\t") if sys.stdout.isatty() else text)
    PRINTING.record(text)


def write_json(text: str, end: str = "\n") -> None:
    """Print JSON on standard output, with control characters as equivalent escapes."""
    if not PRINTING.silent:
        print(visible_json(text), end=end)
    PRINTING.record(text)


def suggest(command: str) -> None:
    """Print a command that the user may run next on standard error, if that is a terminal."""
    if sys.stderr.isatty():
        tell(f"next: {command}")


def tell(text: str) -> None:
    """Print one line about progress, or a remark, on standard error; `--quiet` leaves it out."""
    if not PRINTING.quiet:
        _print(text)
    PRINTING.record(text)


def complain(text: str) -> None:
    """Print one line about an error on standard error."""
    _print(text)
    PRINTING.record(text)


def ask(text: str) -> None:
    """Print a question on standard error, without an end of line."""
    _print(text, end="")


def _print(text: str, end: str = "\n") -> None:
    if not PRINTING.silent:
        print(visible(text, "\t"), end=end, file=LastingStream(sys.stderr), flush=True)


class LastingStream:
    """A stream for progress and errors that outlasts its terminal: what is written to a closed one is dropped.

    Where no SIGHUP comes, as after `disown`, the work thus goes on without a reader.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text; returns its length."""
        with _lasting():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what is written."""
        with _lasting():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _lasting() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        leave_closed_terminal()
