"""The configs that kinds of tasks have in common: how tables are read, and texts or pairs with a label each."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.reading.files import kind_of
from bakeoff.reading.records import Separator
from bakeoff.tasks.examples import LeftOut
from bakeoff.tasks.reading.labels import by_label, label_text
from bakeoff.tasks.reading.layouts import Layout
from bakeoff.tasks.reading.tables import TableForm, require_table, table_rows, texts_of_table
from bakeoff.tasks.task_config import TaskConfig


class TableConfig(TaskConfig):
    """Tables: .csv, .tsv or .jsonl, each plain, .gz or .zst, .parquet, .arrow, and `hub:OWNER/NAME@SPLIT`."""

    header: bool = True
    """Whether the first row of a .csv or .tsv names the columns; false: their names are their numbers, from 1."""
    separator: Separator = "auto"
    """The separator of cells. tab: tabs, and quotation marks are text, whatever the files are called; comma or
    semicolon: these, in files read as .csv; auto: the names of the files decide."""
    extra_columns: bool = False
    """Rows may have more columns than the first."""
    broken_rows: Literal["refuse", "skip"] = "refuse"
    """A row with too few or too many columns, without a label, of broken JSON, with a key twice, that is no JSON object
    or lacks a field which a row before it has, is an error; or is left out, and counted in the notes."""
    layout: Layout = Field(default="table")
    """The form of the files. table: rows with columns; class_folders: a folder with a folder of .txt files for each
    class; trees, coarse_and_fine and race: as SST, TREC and RACE are published (docs/datasets.md)."""

    reading: ClassVar[frozenset[str]] = TaskConfig.reading | {
        "header",
        "separator",
        "extra_columns",
        "broken_rows",
        "layout",
    }

    @property
    @override
    def form(self) -> TableForm:
        """The form in which a file is read."""
        return TableForm(
            self.errors,
            self.encoding,
            self.header,
            self.separator,
            self.extra_columns,
            self.broken_rows,
            self.layout,
            adjustable=True,
        )

    @override
    def reads_its_form(self, path: Path) -> bool:
        """Whether the file is a table without a header, or with another separator or encoding than its name says."""
        usual = self.header and self.separator == "auto" and self.encoding == "utf-8"
        return self.layout == "table" and not usual and kind_of(path) in (".csv", ".tsv")

    @override
    def has_rows(self, path: Path, column: str | None = None) -> bool:
        return self.layout == "table" and (super().has_rows(path, column) or self.separator != "auto")

    def records(self, path: Path, columns: Sequence[str]) -> Iterator[LeftOut | tuple[int, list[Any]]]:
        """The line of each row and its values of some columns; or a `LeftOut` for a row that is left out.

        Raises:
            UserError: two columns are the same, there are no rows, or as of `table_rows`.
        """
        require_table(path, self.form)
        if len(set(columns)) < len(columns):
            raise UserError(f"{path}: each needs a column of its own, not {', '.join(columns)}")
        empty = True
        for record in table_rows(path, columns, self.form):
            empty = empty and isinstance(record, LeftOut)
            yield record
        if empty:
            raise UserError(f"{path}: the file holds no rows")


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
