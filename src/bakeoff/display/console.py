"""Tables, colours and progress bars on a terminal, by Rich."""

from collections.abc import Iterable
from io import StringIO
from typing import IO, Any, TextIO, cast

import rich.console
from rich.box import SIMPLE_HEAD
from rich.console import ConsoleOptions, RenderableType
from rich.control import Control
from rich.progress import TextColumn
from rich.segment import Segment
from rich.table import Table

from bakeoff.display.printing import PRINTING
from bakeoff.display.terminal import LastingStream
from bakeoff.display.text import visible


class Console(rich.console.Console):
    """Rich's console, in which texts are never markup and cannot control the terminal; see also `Printing`."""

    def __init__(self, stderr: bool = False, **options: Any) -> None:
        """A console on standard output, or on standard error, which `--quiet` silences."""
        quiet = PRINTING.silent or (stderr and PRINTING.quiet)
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts, tables and the like, and record them as plain lines."""
        super().print(*objects, **options)
        if not PRINTING.recording or any(isinstance(each, Control) for each in objects):  # a bar is drawn
            return
        if all(isinstance(each, str) for each in objects):
            PRINTING.record(" ".join(objects))
        else:
            plain = StringIO()
            rich.console.Console(file=plain, width=self.width, no_color=True, markup=False).print(*objects, **options)
            PRINTING.record(plain.getvalue())

    @property
    def file(self) -> IO[str]:
        """The stream, which outlasts the terminal."""
        return cast(IO[str], LastingStream(cast(TextIO, super().file)))

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render to segments, with control characters in texts as escapes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text, "\n\t"))


def titled_table(title: str) -> Table:
    """An empty table below a title."""
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)


def column(fields: str) -> TextColumn:
    """A column of a progress bar: a text with fields of its task in braces, which may hold any text."""
    return TextColumn(fields, markup=False)
