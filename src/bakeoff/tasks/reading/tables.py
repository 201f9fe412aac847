"""Tables of texts and labels: .csv, .tsv, .jsonl (each plain, .gz or .zst), .parquet and `hub:`, by their columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.reading.files import COLUMNAR, JSON_LINES, KINDS, kind_of, require_file
from bakeoff.reading.hub import on_hub
from bakeoff.reading.records import OPTION, RecordStyle, Separator
from bakeoff.reading.table_reader import text_value
from bakeoff.reading.tables import open_table
from bakeoff.tasks.examples import LeftOut
from bakeoff.tasks.reading.labels import label_of
from bakeoff.tasks.reading.layouts import LAYOUTS, Layout

_SPREADSHEETS = (".xlsx", ".xls", ".ods")


class TableForm(NamedTuple):
    """The form of a file, where its name does not tell it."""

    errors: Literal["strict", "replace"] = "strict"
    """Invalid text is an error, or is replaced."""
    encoding: str = "utf-8"
    """The encoding of a file of lines."""
    header: bool = True
    """Whether the first row names the columns; otherwise their names are their numbers, from 1."""
    separator: Separator = "auto"
    """The separator of cells, whatever the file is called."""
    extra_columns: bool = False
    """Rows may have more columns than the first."""
    broken_rows: Literal["refuse", "skip"] = "refuse"
    """A row that cannot be read is an error, or is left out."""
    layout: Layout = "table"
    """The layout, for files and folders that are no tables."""
    adjustable: bool = False
    """Whether options say all of this, which errors then advise."""


PLAIN = TableForm()
"""The form of a table that its name tells."""


class Table(NamedTuple):
    """A file of N rows."""

    texts: list[str]
    """(N,) the texts."""
    pairs: list[str] | None
    """(N,) the second texts; None where no column of them was asked for."""
    labels: list[str] | None
    """(N,) the labels; None where no column of them was asked for."""
    lines: list[int]
    """(N,) the line of the file on which each row ends."""


def read_table(
    path: Path,
    text_column: str,
    pair_column: str | None = None,
    label_column: str | None = None,
    errors: Literal["strict", "replace"] = "strict",
) -> Table:
    """Read a file of labelled or unlabelled texts.

    The first line of a .csv or .tsv names the columns; each line of a .jsonl is an object. In a .tsv a quotation mark
    is text. Numbers and truth values are labels, too: 1 is the class `1`, true is `true`.

    Args:
        path: the file.
        text_column: the column with the text.
        pair_column: the column with the second text.
        label_column: the column with the label.
        errors: invalid text is an error, or is replaced.

    Raises:
        UserError: a missing file or column, an empty file or label, a broken row, or invalid UTF-8; with its line.
    """
    table = Table([], [] if pair_column else None, [] if label_column else None, [])
    for row in texts_of_table(path, text_column, pair_column, label_column, PLAIN._replace(errors=errors)):
        assert not isinstance(row, LeftOut)  # which a plain table does not have
        line, texts, label = row
        table.lines.append(line)
        table.texts.append(texts[0])
        if table.pairs is not None:
            table.pairs.append(texts[1])
        if table.labels is not None and label is not None:
            table.labels.append(label)
    return table


def texts_of_table(
    path: Path, text_column: str, pair_column: str | None, label_column: str | None, form: TableForm
) -> Iterator[LeftOut | tuple[int, tuple[str, ...], str | None]]:
    """The line, the one or two texts and the label of each row, as they are read; or a `LeftOut` for a row left out.

    Columns and errors as of `read_table`; `form` tells the form that the file's name does not tell. No rows are held.
    """
    columns = [name for name in (text_column, pair_column, label_column) if name is not None]
    if len(set(columns)) < len(columns):
        require_table(path, form)
        roles = {"text": text_column, "pair": pair_column, "label": label_column}
        those = listed([role for role, name in roles.items() if name is not None])
        raise UserError(f"{path}: {those} must be different columns, not {', '.join(columns)}")
    kinds: dict[str, int] = {}  # of labels, each with the line where it stands first
    texts_of = [name for name in (text_column, pair_column) if name is not None]
    empty = True
    for row in table_rows(path, columns, form):
        if isinstance(row, LeftOut):
            yield row
            continue
        line, cells = row
        where = f"{path}:{line}"
        values = dict(zip(columns, cells, strict=True))
        label = None
        if label_column is not None:
            value = values[label_column]
            if form.broken_rows == "skip" and (value is None or not str(value).strip()):
                yield LeftOut(line, (), "has no label")
                continue
            label = label_of(value, where, label_column)
            kinds.setdefault(_kind(value), line)
            if {"a number", "true or false"} <= kinds.keys():
                other = next(kind for kind in kinds if kind != _kind(value))
                raise UserError(
                    f"{where}: the label is {_kind(value)}, and that of line {kinds[other]} {other}; write "
                    "labels in one way"
                )
        empty = False
        yield line, tuple(text_value(values[name], where, name, form.errors) for name in texts_of), label
    if empty:
        raise UserError(f"{path}: the file holds no rows")


def table_rows(
    path: Path, columns: Sequence[str], form: TableForm, advice: str = ""
) -> Iterator[LeftOut | tuple[int, list[Any]]]:
    """The line of each row of a file and its values of some columns; or a `LeftOut` for a row that could not be read.

    Args:
        path: the file, or the folder of a layout that has one.
        columns: the names of the columns to read.
        form: the form in which it is read.
        advice: advice for the error about a missing column of a table.

    Raises:
        UserError: a missing file or column, or a broken row; with its line.
    """
    require_table(path, form)
    if form.layout != "table":
        yield from LAYOUTS[form.layout](path, columns, form.errors, form.encoding)
        return

    left_out: list[LeftOut] = []  # before the row that is read next

    def note(line: int, reason: str) -> None:
        left_out.append(LeftOut(line, (), reason))

    broken = note if form.broken_rows == "skip" else None
    style = RecordStyle(form.header, form.separator, form.extra_columns, form.adjustable, broken)
    for row in open_table(path, form.errors, form.encoding, style).rows(columns, advice):
        yield from left_out
        left_out.clear()
        yield row
    yield from left_out


def require_table(path: Path, form: TableForm = PLAIN) -> None:
    """Refuse a path that is no file with columns.

    Raises:
        UserError: there is no such file, or it is of another kind.
    """
    if on_hub(path) or form.layout != "table":
        return
    require_file(path)
    known = kind_of(path)
    if form.separator == "auto" and (known is None or known == KINDS[0]):
        advice = f"; {JSON_LINES}" if ".json" in path.suffixes else ""
        if path.suffix.lower() in _SPREADSHEETS:
            advice = "; save the sheet as .csv in UTF-8"
        way = f"give {OPTION} separator=tab" if form.adjustable else "call it .tsv"
        advice = advice or f"; if its cells stand between tabs, {way}"
        raise UserError(f"{path}: labelled data is read from .csv, .tsv or .jsonl, each plain, .gz or .zst{advice}")
    if form.separator != "auto" and known in COLUMNAR:
        raise UserError(f"{path}: separator is for files of lines; leave it out")


def _kind(label: Any) -> str:
    """The name of the JSON type of a label."""
    return "true or false" if isinstance(label, bool) else "a number" if isinstance(label, int | float) else "text"
