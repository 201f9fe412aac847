"""What tasks whose rows stand in tables have in common: how these are read."""

from typing import Literal

from pydantic import Field

from bakeoff.reading.records import Separator
from bakeoff.tasks.reading.layouts import Layout
from bakeoff.tasks.reading.tables import TableForm
from bakeoff.tasks.task import TaskConfig


class TableConfig(TaskConfig):
    """Tables: .csv, .tsv or .jsonl, each plain, .gz or .zst, .parquet, .arrow, and `hub:OWNER/NAME@SPLIT`."""

    header: bool = True
    """The first row of a .csv or .tsv names the columns; false: they are named by their numbers, from 1."""
    separator: Separator = "auto"
    """tab: cells stand between tabs and quotation marks are text, whatever the files are called; comma or semicolon:
    they are .csv with these; auto: their names say it."""
    extra_columns: bool = False
    """Rows may have more columns than the first."""
    broken_rows: Literal["refuse", "skip"] = "refuse"
    """A row with too few or too many columns, without a label, or of broken JSON is an error; or is left out, and
    counted in the notes."""
    layout: Layout = Field(default="table")
    """Another form than that of a table: class_folders, a folder with one of .txt files for each class; trees,
    coarse_and_fine and race, as SST, TREC and RACE are published (docs/datasets.md)."""

    @property
    def form(self) -> TableForm:
        """How a file is read."""
        return TableForm(
            self.errors,
            self.encoding,
            self.header,
            self.separator,
            self.extra_columns,
            self.broken_rows,
            self.layout,
        )
