"""Tables of plain cells, from which Markdown and LaTeX are made."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    """The text, without markup."""
    strong: bool = False
    """Whether it is in bold."""
    rest: "Sequence[Cell]" = ()
    """What stands after it in the same cell, in bold or not."""

    @property
    def runs(self) -> "list[Cell]":
        """The text in parts that are in bold or not."""
        return [Cell(self.text, self.strong), *self.rest]

    def marked(self, shown: Callable[[str], str], bold: str) -> str:
        """The text in a language of markup.

        Args:
            shown: a function that gives a text in the language, without the spaces at its ends.
            bold: what stands around a text in bold, with {} in its place.
        """
        parts = []
        for run in self.runs:
            text = shown(run.text)
            if not run.strong:  # the spaces at its ends part it from what is in bold
                text = f"{' ' * run.text.startswith(' ')}{text}{' ' * run.text.endswith(' ')}"
            parts.append(bold.replace("{}", text) if run.strong and text else text)
        return "".join(parts)

    @property
    def whole(self) -> str:
        """All of its text."""
        return "".join(each.text for each in self.runs)


class PlainTable(NamedTuple):
    """A table of plain cells, the first column of which names the rows."""

    name: str
    """A short name, for a label."""
    title: str
    """The heading."""
    caption: str
    """What the cells are, in a sentence or two."""
    head: Sequence[str]
    """The names of the columns."""
    rows: Sequence[Sequence[Cell]]
    """The rows."""
    words: Collection[int] = ()
    """The columns of text, beside the first, by number from 0 on; the others are numbers."""
