"""Progress of trainings that run side by side: bars on a terminal, lines now and then elsewhere."""

from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, Self

from rich.progress import Progress as Bars
from rich.progress import TaskID

from bakeoff.display.console import Console
from bakeoff.display.pace import Pace
from bakeoff.display.printing import PRINTING
from bakeoff.display.progress import bars
from bakeoff.display.wording import counted


class Board:
    """One display for all trainings that run side by side.

    Args:
        say: prints a line; None: nothing is shown.
        total: number of trainings, with those that wait.
        what: the noun for one training in the display, in the singular, such as `trial`.
        left: says how much time is left for all trainings; empty: unknown.
    """

    def __init__(
        self, say: Callable[[str], None] | None, total: int, what: str, left: Callable[[], str] = lambda: ""
    ) -> None:
        self.print, self.total, self.what, self.left, self.done = say, total, what, left, 0
        self.titles: dict[Hashable, str] = {}
        self.figures: dict[Hashable, str] = {}
        self.tasks: dict[Hashable, TaskID] = {}
        self.remarks: set[str] = set()
        self.pace = Pace()
        console = Console(stderr=True)
        self.bars: Bars | None = bars(console) if say is not None and console.is_terminal else None

    def __enter__(self) -> Self:
        if self.bars:
            self.all = self.bars.add_task(f"all {self.what}s", total=self.total, figures="")
            self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bars:
            self.bars.stop()

    def begin(self, key: Hashable, title: str) -> None:
        """Add a training to the display; nothing changes where it is there already."""
        if key in self.titles:
            return
        self.titles[key] = title
        if self.bars:
            self.tasks[key] = self.bars.add_task(title, total=None, figures="")

    def end(self, key: Hashable, over: bool = True) -> None:
        """Remove a training from the display; one that is `over` counts as done, any other will begin again."""
        self.done += over
        self.titles.pop(key, None)
        self.figures.pop(key, None)
        if self.bars:
            if key in self.tasks:
                self.bars.remove_task(self.tasks.pop(key))
            self.bars.update(self.all, completed=self.done, figures=self.left())

    def hear(self, key: Hashable, note: dict[str, Any]) -> None:
        """Show a note of a training's `TrainingProgress`; a remark that several trainings make is shown once."""
        title = self.titles[key]
        if "line" in note:
            if note["line"] in self.remarks:
                return
            if note.get("remark"):
                self.remarks.add(note["line"])
            self.say(note["line"])
            return
        if "done" not in note:
            return
        if self.bars:
            self.bars.update(self.tasks[key], completed=note["done"], total=note["total"], figures=note["figures"])
        self.figures[key] = f"{title}: step {note['done']}/{note['total']}  {note['figures']}"
        if self.pace.due():
            if self.bars:
                self.bars.update(self.all, figures=self.left())
            for line in (self.whole(), *self.figures.values()):
                if self.bars:
                    PRINTING.record(line)
                else:
                    self.say(line)

    def whole(self) -> str:
        """The number of trainings that are done, and the time that is left for the others, in words."""
        left = self.left()
        return f"{self.done} of {counted(self.total, self.what)} done" + (f", {left}" if left else "")

    def say(self, line: str) -> None:
        """Print a line, with the bars out of its way."""
        if self.print is None:
            return
        if self.bars:
            self.bars.stop()  # else the bars would be in the line's way, wherever it is printed
        self.print(line)
        if self.bars:
            self.bars.start()
