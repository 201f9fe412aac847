"""What the command line's `--quiet` and `--log` change for everything that is printed."""

import sys
import time
from io import RawIOBase
from pathlib import Path

from bakeoff.display.text import visible
from bakeoff.errors import UserError


class Printing:
    """The settings of one command; there is one object, `PRINTING`, that all printing asks.

    Attributes:
        quiet: whether progress and remarks are left out; results, questions and errors are printed all the same.
        silent: whether nothing at all is printed, because another process of the same command prints it.
    """

    def __init__(self) -> None:
        self.quiet = self.silent = False
        self._log: RawIOBase | None = None
        self._path = Path()

    @property
    def recording(self) -> bool:
        """Whether lines are appended to a file."""
        return self._log is not None

    def begin(self, quiet: bool, log: Path | None) -> None:
        """Take the settings of a command; lines are appended to the file `log`, which is made where it is absent.

        Raises:
            UserError: the file cannot be written.
        """
        self.end()
        if log is not None and not self.silent:
            try:
                self._log = open(log, "ab", buffering=0)  # noqa: SIM115
            except OSError as error:
                raise UserError(f"--log {log}: cannot be written: {error.strerror or error}") from None
            self._path = log
        self.quiet = quiet

    def end(self) -> None:
        """Close the file, and print everything from now on."""
        log, self._log, self.quiet = self._log, None, False
        if log is not None:
            log.close()

    def record(self, text: str) -> None:
        """Append lines to the file, if there is one, each with the time; they are with the system at once.

        A file that cannot be written any more is given up with one line, while the command goes on.
        """
        if self._log is None:
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        try:
            for line in text.splitlines():
                self._log.write(f"{now} {visible(line, chr(9))}\n".encode())
        except OSError as error:
            self._log.close()
            self._log = None
            sys.stderr.write(f"bakeoff: --log {self._path}: {error.strerror or error}; nothing more is written to it\n")


PRINTING = Printing()
"""The settings of the command that this process runs."""
