"""The progress of long work: a bar on a terminal, a line every few seconds elsewhere."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn
from rich.progress import Progress as Bar

from bakeoff.display.console import Console, column
from bakeoff.display.pace import Pace
from bakeoff.display.printing import PRINTING

NOTE_SECONDS = 0.25
"""Seconds between two notes of figures to a function that shows them elsewhere."""


class Remarked:
    """Progress is shown for trainings one after another in a process; a remark that several make is shown once.

    Args:
        before: remarks with which the display of each training begins.
    """

    def __init__(self, before: Sequence[str] = ()) -> None:
        self.said: set[str] = set()
        self.before = tuple(before)


Shown = bool | Remarked | Callable[[dict[str, Any]], None]
"""Whether progress is shown; or a function that gets the notes of `TrainingProgress`, and nothing is printed."""


class TrainingProgress:
    """Steps done, loss, tokens a second and time left.

    Args:
        title: name of the training.
        total: number of steps.
        shown: False for silence. A function gets notes, and nothing is printed: a dict with `done`, `total` and
            `figures`, or with a `line`, and `remark` if other trainings may print the same line.
        first: remarks that come before all others.
    """

    def __init__(self, title: str, total: int, shown: Shown = True, first: Sequence[str] = ()) -> None:
        self.title, self.total, self.shown = title, total, bool(shown)
        self.note = shown if callable(shown) else None
        self.said = shown.said if isinstance(shown, Remarked) else set[str]()
        self.before = (*first, *(shown.before if isinstance(shown, Remarked) else ()))
        self.noted = 0.0
        self.console = Console(stderr=True)
        self.bar: Bar | None = None
        self.pace = Pace()
        self.beside = ""
        if self.shown and self.note is None and self.console.is_terminal:
            self.bar = bars(self.console)
            self.task = self.bar.add_task(title, total=total, figures="")

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        for text in self.before:
            self.remark(text)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def step(self, done: int, loss: float, rate: float, seconds_left: float) -> None:
        """Show the figures after a step: its loss, tokens a second, and the time left."""
        if self.shown:
            self.figures(done, f"loss {loss:.3f}{self.beside}  {rate:,.0f} tokens/s  {duration(seconds_left)} left")

    def figures(self, done: int, figures: str) -> None:
        """Show figures in words after a step."""
        if self.note is not None:
            if time.monotonic() - self.noted > NOTE_SECONDS or done == self.total:
                self.noted = time.monotonic()
                self.note({"done": done, "total": self.total, "figures": figures})
            return
        if self.bar:
            self.bar.update(self.task, completed=done, figures=figures)
        if self.pace.due():
            line = f"{self.title}: step {done}/{self.total}  {figures}"
            if self.bar:
                PRINTING.record(line)
            else:
                self.line(line)

    def line(self, text: str) -> None:
        """Print a line, or note it where a function gets the notes."""
        if self.note is not None:
            self.note({"line": text})
        elif self.shown:
            self.console.print(text, soft_wrap=True)

    def remark(self, text: str) -> None:
        """Print a line that other trainings may have said before."""
        if self.note is not None:
            self.note({"line": text, "remark": True})
        elif text not in self.said:
            self.said.add(text)
            self.line(text)


def bars(console: Console) -> Bar:
    """Bars of trainings, each with the field `figures`; they disappear when the display stops."""
    return Bar(
        column("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        column("{task.fields[figures]}"),
        console=console,
        transient=True,
    )


def duration(seconds: float) -> str:
    """Seconds as `42 s`, `3:07` or `2:15:00`."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
