"""Progress of a long reading: a bar on a terminal, a line a phase and one now and then elsewhere."""

import sys
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from bakeoff.display.console import Console, column
from bakeoff.display.pace import Pace
from bakeoff.display.printing import PRINTING
from bakeoff.display.terminal import tell
from bakeoff.display.wording import duration, quantity

T = TypeVar("T", covariant=True)


class Reader(Protocol[T]):
    """A reader of files, piece by piece."""

    @property
    def files(self) -> Sequence[object]:
        """The files, in the order in which they are read."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Size of each file in bytes on disk."""
        ...

    def bytes_read(self) -> int:
        """Number of bytes on disk that have been read, of `sum(sizes)`."""
        ...

    def __iter__(self) -> Iterator[T]: ...


ShowProgress = bool | Callable[[str, int, int], None]
"""True: show progress on standard error. Or a function that is called with phase, bytes read and all bytes."""

_EVERY = 256  # pieces between two updates


class ReadingProgress:
    """Display of a reader's progress through its phases."""

    def __init__(self, show: ShowProgress, reader: Reader[object]) -> None:
        self._call = show if callable(show) else None
        self._console = Console(stderr=True) if show is True else None
        self._reader = reader
        self._bar: Bar | None = None
        if self._console is not None and self._console.is_terminal:
            columns = (column("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._bar = Bar(*columns, TimeRemainingColumn(), console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, text: str) -> None:
        """Print one line about the next step."""
        if self._console is not None:
            if self._bar is not None:
                self._bar.console.print(text)
            else:
                tell(text)

    def phase(self, name: str, reader: Reader[T], pieces: Iterator[T] | None = None, share: float = 1.0) -> Iterator[T]:
        """Pass on the pieces of a reading, and show its progress.

        Args:
            name: name of the phase.
            reader: the reader.
            pieces: the pieces of a part of the text; None: all pieces. The text before the part counts as done.
            share: approximate share of that part in the text; below 1 the text before the part does not count.
        """
        total = round(share * sum(reader.sizes))
        if self._bar is None:
            self.note(f"{name} {quantity(total)}B in {len(reader.files)} file{'s' * (len(reader.files) != 1)}")
        task = self._bar.add_task(name, total=total) if self._bar is not None else None
        before: int | None = 0 if share == 1 else None
        pace = Pace()

        def update() -> None:
            nonlocal before
            if before is None:
                before = reader.bytes_read()
            done = min(total, reader.bytes_read() - before) if share < 1 else reader.bytes_read()
            if self._bar is not None and task is not None:
                self._bar.update(task, completed=done)
            if self._console is not None and pace.due():
                say = PRINTING.record if self._bar is not None else tell
                say(f"{name}: {quantity(done)}B of {quantity(total)}B{_pace(done, total, pace.seconds())}")
            if self._call is not None:
                self._call(name, done, total)

        for i, piece in enumerate(reader if pieces is None else pieces):
            if i % _EVERY == 0:
                update()
            yield piece
        update()


def _pace(done: int, total: int, seconds: float) -> str:
    """Bytes a second and the time left, as the end of a line; empty as long as nothing is known."""
    if not done or seconds <= 0:
        return ""
    left = duration(max(0, total - done) * seconds / done)
    return f", {quantity(done / seconds)}B/s, {left} left"


class Tally:
    """Display of tasks that other processes do: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, show: bool, name: str, total: int) -> None:
        """Show on standard error how many of `total` tasks are done, if `show` is set."""
        self._bar = Bar(
            column("{task.description}"),
            BarColumn(),
            column("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not show or not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(name, total=total)
        self._name, self._total, self._done, self._shown, self._pace = name, total, 0, show, Pace()
        if show and self._bar.disable:
            tell(name)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self) -> None:
        """Count one more task as done."""
        self._bar.advance(self._task)
        self._done += 1
        if self._shown and self._pace.due():
            say = tell if self._bar.disable else PRINTING.record
            say(f"{self._name}: {self._done:,} of {self._total:,}")
