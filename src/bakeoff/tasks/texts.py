"""What tasks on a text, or on a pair of texts, have in common: their columns, and their rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from bakeoff.tasks.tables import read_table
from bakeoff.tasks.task import Example, TaskConfig


class TextsConfig(TaskConfig):
    """Texts or pairs with a label each: .csv, .tsv or .jsonl, each plain, .gz or .zst."""

    text_column: str
    """The column with the text."""
    pair_column: str | None = None
    """The column with the second text, for tasks on pairs."""
    label_column: str
    """The column with the label: the class, or the number."""

    reads_windows: ClassVar[bool] = True

    @property
    @override
    def input_sides(self) -> int:
        return len(self.text_columns)

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column] if self.pair_column is None else [self.text_column, self.pair_column]

    def rows(self, path: Path, labelled: bool) -> Iterator[tuple[int, tuple[str, ...], str | None]]:
        """The line of each row, its texts, and its label where they are wanted.

        Raises:
            UserError: see `read_table`.
        """
        label_column = self.label_column if labelled else None
        table = read_table(path, self.text_column, self.pair_column, label_column, self.errors)
        sides = [table.texts] if table.pairs is None else [table.texts, table.pairs]
        labels: Sequence[str | None] = [None] * len(table.lines) if table.labels is None else table.labels
        yield from zip(table.lines, zip(*sides, strict=True), labels, strict=True)


def sides_of(examples: Sequence[Example]) -> tuple[list[str], list[str] | None]:
    """(N,) first texts of examples, and second texts where they are pairs."""
    firsts = [each.texts[0] for each in examples]
    return firsts, [each.texts[1] for each in examples] if examples and len(examples[0].texts) > 1 else None
