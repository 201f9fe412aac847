"""The part of the config that tasks with tables have in common: how tables are read."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.reading.files import kind_of
from bakeoff.reading.records import Separator
from bakeoff.tasks.examples import LeftOut
from bakeoff.tasks.reading.layouts import Layout
from bakeoff.tasks.reading.tables import TableForm, require_table, table_rows
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
    """A row with too few or too many columns, without a label, of broken JSON or with a key twice is an error; or is
    left out, and counted in the notes."""
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
