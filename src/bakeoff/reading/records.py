"""Records with named fields: the lines of a .jsonl file, the rows of a .csv or .tsv file."""

import csv
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.json_files import JsonError, RepeatedKey, json_value
from bakeoff.reading.fields import existing
from bakeoff.reading.files import LONGEST_RECORD, NUL_BYTES, LineReader, kind_of

Separator = Literal["auto", "tab", "comma", "semicolon"]
"""Separator of the cells in a row; auto: the file's name says it."""

_SIGNS = {"tab": "\t", "comma": ",", "semicolon": ";"}


class RecordStyle(NamedTuple):
    """Style of a file's rows, as far as its name does not say it."""

    header: bool = True
    """Whether the first row names the columns; false: their names are their numbers, from 1."""
    separator: Separator = "auto"
    """Separator of cells. tab: tabs, as in a .tsv, whatever the file's name; comma or semicolon: as in a .csv; auto: as
    the name says."""
    extra_columns: bool = False
    """Whether rows may have more columns than the first row."""
    on_broken: Callable[[int, str], None] | None = None
    """A function that is called with line and reason of each broken record, which is skipped; None: raise an error."""


PLAIN = RecordStyle()
"""The style of a file of which only the name is known."""


def read_records(
    path: Path,
    lines: LineReader,
    names: Sequence[str],
    advice: str = "",
    skip: int = 0,
    style: RecordStyle = PLAIN,
) -> Iterator[tuple[int, list[Any]]]:
    """The number of each record's last line, and the record's values of some fields; blank lines are skipped.

    The first line of a .csv or .tsv names the columns; each line of a .jsonl is an object. In a .tsv a quotation mark
    is text, and in one of a single column a blank line is a record with a blank text.

    Args:
        path: the file, whose name tells the kind.
        lines: the file's lines.
        names: fields or columns, in the order in which their values are wanted.
        advice: advice for the error about a missing field.
        skip: number of records to pass over; those of a .jsonl file are not parsed.
        style: the style of the file's rows.

    Raises:
        UserError: a field or column is missing, or a record is broken (with its line).
    """
    kind = _kind(path, style)
    if kind == ".jsonl":
        for number, record in _objects(path, lines, skip, style):
            yield number, [record[existing(name, list(record), f"{path}:{number}", "field", advice)] for name in names]
        return
    places: list[int] | None = None
    header: list[str] = []
    for number, row in _csv_rows(path, lines, _SIGNS.get(style.separator, ",")) if kind == ".csv" else _tsv_rows(lines):
        if places is None:
            if problem := _no_table(row):
                raise UserError(f"{path}:{number}: {problem}")
            header = [name.strip() for name in row] if style.header else [str(n + 1) for n in range(len(row))]
            hint = advice or (_advice(header) if style.header else "; columns have numbers, from 1")
            places = [header.index(existing(name, header, f"{path}:{number}", "column", hint)) for name in names]
            if twice := next((name for name in names if header.count(name) > 1), None):
                raise UserError(
                    f"{path}:{number}: {header.count(twice)} columns are called '{twice}'; rename all but one"
                )
            if style.header:
                continue
        if len(row) < len(header) or (any(row[len(header) :]) and not style.extra_columns):
            # A row that is too long or too short has probably moved a value to another column.
            reason = f"the row has {counted(len(row), 'column')}, the first line {len(header)}"
            if style.on_broken is None:
                raise UserError(f"{path}:{number}: {reason}; mend it")
            style.on_broken(number, "has another number of columns than the first")
        elif skip:
            skip -= 1
        else:
            yield number, [row[place] for place in places]


def record_names(path: Path, lines: LineReader, style: RecordStyle = PLAIN) -> list[str]:
    """The names of the columns, or of the first record's fields; empty if the file is empty.

    Raises:
        UserError: the first record is broken.
    """
    kind = _kind(path, style)
    if kind == ".jsonl":
        return next((list(record) for _, record in _objects(path, lines, 0, style)), [])
    rows = _csv_rows(path, lines, _SIGNS.get(style.separator, ",")) if kind == ".csv" else _tsv_rows(lines)
    first = next((row for _, row in rows), [])
    return [name.strip() for name in first] if style.header else [str(number + 1) for number in range(len(first))]


def whole_records(
    path: Path, errors: str, encoding: str = "utf-8", style: RecordStyle = PLAIN
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each record's last line, and all of its values by their names; errors as of `read_records`."""
    if _kind(path, style) == ".jsonl":
        yield from _objects(path, LineReader(path, errors, encoding=encoding), 0, style)
        return
    names = record_names(path, LineReader(path, errors, encoding=encoding), style)
    for number, values in read_records(path, LineReader(path, errors, encoding=encoding), names, style=style):
        yield number, dict(zip(names, values, strict=True))


def _kind(path: Path, style: RecordStyle) -> str | None:
    """The ending that stands for the form of a file's rows: .jsonl, .csv, or .tsv."""
    return {"auto": kind_of(path), "tab": ".tsv"}.get(style.separator, ".csv")


def text_value(value: Any, where: str, name: str, errors: str) -> str:
    """A field's value as text; a missing value is the empty text.

    Args:
        value: as `read_records` yields it.
        where: file and line.
        name: the field's name.
        errors: "strict" refuses half of a surrogate pair, which JSON can spell and which is no character; "replace"
            reads it as U+FFFD.

    Raises:
        UserError: the value is no text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UserError(f"{where}: '{name}' holds {type(value).__name__} instead of text")
    try:
        value.encode()
    except UnicodeEncodeError:
        if errors == "strict":
            raise UserError(
                f"{where}: half of a surrogate pair (\\ud8...) is not a character; give --errors replace"
            ) from None
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def foreign_line(line: str) -> str | None:
    """The mistake in a line from another system (NUL bytes, carriage returns), and advice; None: there is none."""
    if "\0" in line:
        return NUL_BYTES
    if "\r" in line.rstrip("\r\n"):
        return "lines end with a carriage return alone; convert them: tr '\\r' '\\n' < FILE"
    return None


def _no_table(row: Sequence[str]) -> str | None:
    """The mistake in a file with this first row, see `foreign_line`; None: there is none."""
    return next((problem for cell in row if "\n" not in cell and (problem := foreign_line(cell))), None)


def _advice(header: Sequence[str]) -> str:
    """Advice for a first row that does not name the columns."""
    for name, sign in _SIGNS.items():
        if len(header) == 1 and sign in header[0]:
            return f"; if its cells stand between {name}s, give --option separator={name}"
    return "; if the first row is data, give --option header=false, and columns by number from 1"


def _objects(path: Path, lines: LineReader, skip: int, style: RecordStyle) -> Iterator[tuple[int, dict[str, Any]]]:
    for line in lines.whole():
        if not line.text.strip():
            continue
        if skip:
            skip -= 1
            continue
        where = f"{path}:{line.number}"
        try:
            record = json_value(line.text, any_number=True)
        except JsonError as error:
            if style.on_broken is not None:
                style.on_broken(line.number, "has a key twice" if isinstance(error, RepeatedKey) else "is broken JSON")
                continue
            problem = foreign_line(line.text) or (
                f"{error.problem}; mend it" if isinstance(error, RepeatedKey) else None
            )
            raise UserError(
                f"{where}: {problem or f'broken JSON ({error.problem}); a .jsonl file holds one JSON object a line'}"
            ) from None
        if not isinstance(record, dict):
            raise UserError(f"{where}: not a JSON object; a .jsonl file holds one JSON object a line")
        yield line.number, record


def _tsv_rows(lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    columns = 0
    for line in lines.whole():
        row = line.text.rstrip("\r\n").split("\t")
        if row != [""] or columns == 1:
            columns = columns or len(row)
            yield line.number, row


def _csv_rows(path: Path, lines: LineReader, separator: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_RECORD)
    opened = 0  # the line on which the quotation mark opened that is open now; 0: none is
    before = 0  # of a row that is not at its end, the line on which the last one opened that was closed again

    def fed() -> Generator[str, None, None]:
        nonlocal opened, before
        for line in lines.whole():
            marks = line.text.replace('""', "").count('"')
            if opened and marks % 2:
                opened, before = 0, opened
            elif opened and marks:  # closed and opened again
                opened, before = line.number, opened
            elif marks % 2:
                opened = line.number
            yield line.text

    text = fed()
    reader = csv.reader(text, delimiter=separator, strict=True)
    try:
        for row in reader:
            opened = before = 0
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        if opened and "unexpected end" in str(error):
            raise UserError(
                f"{path}:{opened}: broken CSV (a quotation mark opens here and is never closed); close it, or "
                'double it ("") where it is text'
            ) from None
        reason = f"{error}); is a quotation mark left open?"
        if before and before < reader.line_num:
            reason = f"{error}); is the quotation mark left open that opens on line {before}?"
        if "new-line" in str(error):
            reason = "a carriage return within a line); convert the file: tr '\\r' '\\n' < FILE"
        raise UserError(f"{path}:{reader.line_num}: broken CSV ({reason}") from None
    finally:
        text.close()  # with the file, which the error would keep open
