"""Tables of texts and labels: .csv, .tsv and .jsonl files, each plain, .gz or .zst, with named columns."""

import math
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.errors import UserError
from bakeoff.reading.files import JSON_LINES, LineReader, kind_of
from bakeoff.reading.records import read_records, text_value


class Table(NamedTuple):
    """The rows of a file; N rows."""

    texts: list[str]
    """(N,) the texts."""
    pairs: list[str] | None
    """(N,) the second texts, where a column of them was asked for."""
    labels: list[str] | None
    """(N,) the labels, where a column of them was asked for."""
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

    Raises:
        UserError: a missing file or column, an empty file or label, a broken row, or invalid UTF-8; with its line.
    """
    require_table(path)
    columns = [name for name in (text_column, pair_column, label_column) if name is not None]
    if len(set(columns)) < len(columns):
        raise UserError(f"{path}: text, pair and label must be different columns, not {', '.join(columns)}")
    kinds: dict[str, int] = {}  # of labels, each with the line where it stands first
    table = Table([], [] if pair_column else None, [] if label_column else None, [])
    for line, cells in read_records(path, LineReader(path, errors), columns):
        values = dict(zip(columns, cells, strict=True))
        table.lines.append(line)
        table.texts.append(text_value(values[text_column], f"{path}:{line}", text_column, errors))
        if pair_column is not None and table.pairs is not None:
            table.pairs.append(text_value(values[pair_column], f"{path}:{line}", pair_column, errors))
        if label_column is not None and table.labels is not None:
            value = values[label_column]
            table.labels.append(_label(value, f"{path}:{line}", label_column))
            kinds.setdefault(_kind(value), line)
            if {"a number", "true or false"} <= kinds.keys():
                other = next(kind for kind in kinds if kind != _kind(value))
                raise UserError(
                    f"{path}:{line}: the label is {_kind(value)}, and that of line {kinds[other]} {other}; write "
                    "labels in one way"
                )
    if not table.texts:
        raise UserError(f"{path}: the file holds no rows")
    return table


def require_table(path: Path) -> None:
    """Refuse what is no file with columns.

    Raises:
        UserError: there is no such file, or it is of another kind.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if kind_of(path) not in (".csv", ".tsv", ".jsonl"):
        advice = f"; {JSON_LINES}" if ".json" in path.suffixes else ""
        raise UserError(f"{path}: labelled data is read from .csv, .tsv or .jsonl, each plain, .gz or .zst{advice}")


def _kind(label: Any) -> str:
    """What JSON has for a label."""
    return "true or false" if isinstance(label, bool) else "a number" if isinstance(label, int | float) else "text"


def _label(value: Any, where: str, column: str) -> str:
    """A label as text; 1.0 is 1."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where}: the label is {value}, which is no class (column '{column}')")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and not isinstance(value, str | int | float):
        raise UserError(f"{where}: column '{column}' holds {type(value).__name__} instead of a label")
    label = "" if value is None else str(value).strip()
    if not label:
        raise UserError(f"{where}: the label is empty (column '{column}'); every row needs one")
    return label
