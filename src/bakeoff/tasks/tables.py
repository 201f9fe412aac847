"""Tables of texts and labels: .csv, .tsv and .jsonl files, each plain, .gz or .zst, with named columns."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.corpus.files import LONGEST_RECORD, LineReader, kind_of
from bakeoff.errors import UserError, nearest


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

    def take(self, rows: Sequence[int]) -> "Table":
        """Some of the rows."""
        return Table(
            [self.texts[row] for row in rows],
            None if self.pairs is None else [self.pairs[row] for row in rows],
            None if self.labels is None else [self.labels[row] for row in rows],
            [self.lines[row] for row in rows],
        )


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
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if kind_of(path) not in (".csv", ".tsv", ".jsonl"):
        raise UserError(f"{path}: labelled data is read from .csv, .tsv or .jsonl, each plain, .gz or .zst")
    columns = [name for name in (text_column, pair_column, label_column) if name is not None]
    if len(set(columns)) < len(columns):
        raise UserError(f"{path}: text, pair and label must be different columns, not {', '.join(columns)}")
    table = Table([], [] if pair_column else None, [] if label_column else None, [])
    for line, cells in _records(path, columns, errors):
        values = dict(zip(columns, cells, strict=True))
        table.lines.append(line)
        table.texts.append(_text(values[text_column], f"{path}:{line}", text_column))
        if pair_column is not None and table.pairs is not None:
            table.pairs.append(_text(values[pair_column], f"{path}:{line}", pair_column))
        if label_column is not None and table.labels is not None:
            table.labels.append(_label(values[label_column], f"{path}:{line}", label_column))
    if not table.texts:
        raise UserError(f"{path}: the file holds no rows")
    return table


def _records(path: Path, columns: list[str], errors: str) -> Iterator[tuple[int, list[Any]]]:
    """Line and cells, in the order of `columns`, of each row; blank lines are passed over."""
    lines = LineReader(path, errors)
    kind = kind_of(path)
    if kind == ".jsonl":
        yield from _json_records(path, lines, columns)
        return
    places: list[int] | None = None
    header: list[str] = []
    for line, row in _csv_rows(path, lines) if kind == ".csv" else _tsv_rows(lines):
        if places is None:
            header = [name.strip() for name in row]
            places = [header.index(_existing(name, header, f"{path}:{line}")) for name in columns]
        elif len(row) < len(header) or any(row[len(header) :]):
            # A row that is too long or too short has probably moved its label to another column.
            raise UserError(f"{path}:{line}: the row has {len(row)} columns, the first line {len(header)}; mend it")
        else:
            yield line, [row[place] for place in places]


def _json_records(path: Path, lines: LineReader, columns: list[str]) -> Iterator[tuple[int, list[Any]]]:
    for line in lines.whole():
        if not line.text.strip():
            continue
        where = f"{path}:{line.number}"
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise UserError(f"{where}: broken JSON ({reason}); a .jsonl file holds one JSON object a line") from None
        if not isinstance(record, dict):
            raise UserError(f"{where}: not a JSON object; a .jsonl file holds one JSON object a line")
        yield line.number, [record[_existing(name, list(record), where)] for name in columns]


def _tsv_rows(lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    for line in lines.whole():
        if body := line.text.rstrip("\r\n"):
            yield line.number, body.split("\t")


def _csv_rows(path: Path, lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_RECORD)
    reader = csv.reader((line.text for line in lines.whole()), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: broken CSV ({error}); is a quotation mark left open?") from None


def _existing(name: str, columns: list[str], where: str) -> str:
    """The column's name, which must be among the existing ones."""
    if name in columns:
        return name
    hint = nearest(name, columns)
    shown = "" if hint.startswith("; choose from") else f" (columns here: {', '.join(columns)})"
    raise UserError(f"{where}: no column '{name}'{hint}{shown}")


def _text(value: Any, where: str, column: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UserError(f"{where}: column '{column}' holds {type(value).__name__} instead of text")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half of a surrogate pair, which is no character
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _label(value: Any, where: str, column: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is not None and not isinstance(value, str | int | float):
        raise UserError(f"{where}: column '{column}' holds {type(value).__name__} instead of a label")
    label = "" if value is None else str(value).strip()
    if not label:
        raise UserError(f"{where}: the label is empty (column '{column}'); every row needs one")
    return label
