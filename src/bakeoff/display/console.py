"""Tables, colours and progress bars on a terminal, by Rich."""

from collections.abc import Iterable
from typing import IO, TextIO, cast

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.progress import TextColumn
from rich.segment import Segment

from bakeoff.display.terminal import LastingStream
from bakeoff.display.text import visible


class Console(rich.console.Console):
    """Rich's console, in which texts are never markup and cannot control the terminal."""

    def __init__(self, stderr: bool = False) -> None:
        """A console on standard output, or on standard error."""
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

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


def column(fields: str) -> TextColumn:
    """A column of a progress bar: a text with fields of its task in braces, which may hold any text."""
    return TextColumn(fields, markup=False)
