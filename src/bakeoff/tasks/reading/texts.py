"""The config and the rows that tasks on a text, or on a pair of texts, have in common."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator
from typing_extensions import override

from bakeoff.tasks.examples import Example, LeftOut
from bakeoff.tasks.reading.labels import by_label, label_text
from bakeoff.tasks.reading.table_config import TableConfig
from bakeoff.tasks.reading.tables import texts_of_table


class TextsConfig(TableConfig):
    """Texts or pairs with a label each: .csv, .tsv or .jsonl, each plain, .gz or .zst."""

    text_column: str
    """The column with the text."""
    pair_column: str | None = None
    """The column with the second text, for tasks on pairs."""
    label_column: str
    """The column with the label: the class, or the number."""
    label_names: dict[str, str | None] = Field(default={})
    """Names for labels of the files, `{"0": negative, "4": positive, "2": null}`; rows whose label has null are left
    out, and counted in the notes. A label that is not named is its own name."""

    @field_validator("text_column", "pair_column", "label_column", mode="before")
    @classmethod
    def _numbered(cls, value: Any) -> Any:
        """The name of a column, which may be given as a number."""
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("label_names", mode="before")
    @classmethod
    def _as_texts(cls, value: Any) -> Any:
        """Labels and names as texts, as in `label_text`: 1.0 is 1, and true is `true`."""
        if not isinstance(value, Mapping):
            return value
        return {key: None if name is None else label_text(name) for key, name in by_label(value).items()}

    reads_windows: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = True
    reading: ClassVar[frozenset[str]] = TableConfig.reading | {"label_names"}

    @property
    @override
    def input_sides(self) -> int:
        return len(self.text_columns)

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column] if self.pair_column is None else [self.text_column, self.pair_column]

    def rows(self, path: Path, labelled: bool) -> Iterator[LeftOut | tuple[int, tuple[str, ...], str | None]]:
        """The line of each row, its texts, and its label if `labelled`; or a `LeftOut` for a row that is left out.

        Raises:
            UserError: see `texts_of_table`.
        """
        label_column = self.label_column if labelled else None
        for row in texts_of_table(path, self.text_column, self.pair_column, label_column, self.form):
            if isinstance(row, LeftOut):
                yield row
                continue
            line, texts, label = row
            named = label if label is None else self.label_names.get(label, label)
            if label is not None and named is None:
                yield LeftOut(line, (), f"has the label '{label}'")
            else:
                yield line, texts, named


def sides_of(examples: Sequence[Example]) -> tuple[list[str], list[str] | None]:
    """(N,) the first texts of N examples, and (N,) the second texts where examples are pairs, else None."""
    firsts = [each.texts[0] for each in examples]
    return firsts, [each.texts[1] for each in examples] if examples and len(examples[0].texts) > 1 else None
