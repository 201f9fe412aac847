"""Input that arrives while it is written, from standard input or a named pipe."""

import io
import os
import select
import sys
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError

PATIENCE = 0.05
"""Seconds without input after which the writer counts as pausing."""


class ByteStream:
    """Bytes that can be read once, with a way to ask whether more are there at the moment.

    Attributes:
        lines: the file object to read lines from.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Open a pipe; None: standard input.

        Raises:
            UserError: standard input is closed, or the pipe cannot be read.
        """
        self._raw: _Asked | None = None
        self.lines: Any
        if path is not None:
            try:
                self._raw = _Asked(os.open(path, os.O_RDONLY))
            except OSError as error:
                raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        elif sys.stdin is None or sys.stdin.closed:
            raise UserError("standard input is closed; give texts, or a file of them by --texts")
        else:
            try:
                self._raw = _Asked(sys.stdin.fileno())
            except (OSError, ValueError):  # a program has replaced sys.stdin
                self.lines = sys.stdin.buffer
                return
        self.lines = io.BufferedReader(self._raw)

    def pauses(self) -> bool:
        """Whether no input arrives within PATIENCE; False if that cannot be known."""
        if self._raw is None:
            return False
        self._raw.asked = True
        try:
            return not self.lines.peek(1)
        finally:
            self._raw.asked = False


class _Asked(io.RawIOBase):
    """A raw file whose reads return None instead of waiting while `asked` is set."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.asked = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.asked and not select.select([self._descriptor], [], [], PATIENCE)[0]:
            return None
        return os.readv(self._descriptor, [buffer])
