"""Writes checkpoints in a thread while the training goes on: one at a time, and all before the training ends."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bakeoff.signals import stopped_by


class _Abandoned(BaseException):
    """The write is given up, because nobody wants to wait for it."""


class CheckpointWriter:
    """Writes checkpoints beside a training; a context at whose end the last one is written.

    A write that fails is an error of the training, raised by whichever method is called next. After an error of the
    training itself the write that was begun is finished; only a KeyboardInterrupt gives it up, at the next file.

    Attributes:
        work_seconds: processor time of all writes up to their last `bakeoff.signals.go_on`.
    """

    def __init__(self) -> None:
        self.work_seconds = 0.0
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
            return
        self._given_up = issubclass(kind, KeyboardInterrupt)
        self._wait()
        self._failure, self._given_up = None, False

    def begin(self, write: Callable[[], None]) -> None:
        """Begin a write, after the one before has ended.

        Args:
            write: a function that calls `go_on` between the files that it writes, and leaves nothing half-written.
        """
        self.finish()
        self._thread = threading.Thread(target=self._carry_out, args=(write,), name="bakeoff-checkpoint")
        self._thread.start()

    def check(self) -> None:
        """Raise the error of a write that has failed; a write that goes on is not waited for."""
        if self._thread is not None and not self._thread.is_alive():
            self.finish()

    def finish(self) -> None:
        """Wait for the write that was begun, if any, and raise its error."""
        self._wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _carry_out(self, write: Callable[[], None]) -> None:
        before = self.work_seconds

        def look() -> None:
            self.work_seconds = before + time.thread_time()
            if self._given_up:
                raise _Abandoned

        try:
            with stopped_by(look):
                write()
        except _Abandoned:
            pass
        except BaseException as error:
            self._failure = error
