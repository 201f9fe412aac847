"""Records with named fields: the lines of a .jsonl file, the rows of a .csv or .tsv file."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.reading.fields import existing
from bakeoff.reading.files import LONGEST_RECORD, LineReader, kind_of


def read_records(
    path: Path, lines: LineReader, names: Sequence[str], advice: str = "", skip: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """The line on which each record ends, and its values of some fields; blank lines are passed over.

    The first line of a .csv or .tsv names the columns; each line of a .jsonl is an object. In a .tsv a quotation mark
    is text, and in one of a single column a blank line is a record with a blank text.

    Args:
        path: the file; its name tells the kind.
        lines: its lines.
        names: fields or columns, in the order in which their values are wanted.
        advice: what to do about one that is missing.
        skip: records to pass over; those of a .jsonl file are not parsed.

    Raises:
        UserError: a missing field or column, or a broken record; with its line.
    """
    kind = kind_of(path)
    if kind == ".jsonl":
        for number, record in _objects(path, lines, skip):
            yield number, [record[existing(name, list(record), f"{path}:{number}", "field", advice)] for name in names]
        return
    places: list[int] | None = None
    header: list[str] = []
    for number, row in _csv_rows(path, lines) if kind == ".csv" else _tsv_rows(lines):
        if places is None:
            header = [name.strip() for name in row]
            places = [header.index(existing(name, header, f"{path}:{number}", "column", advice)) for name in names]
            if twice := next((name for name in names if header.count(name) > 1), None):
                raise UserError(
                    f"{path}:{number}: {header.count(twice)} columns are called '{twice}'; rename all but one"
                )
        elif len(row) < len(header) or any(row[len(header) :]):
            # A row that is too long or too short has probably moved a value to another column.
            raise UserError(f"{path}:{number}: the row has {len(row)} columns, the first line {len(header)}; mend it")
        elif skip:
            skip -= 1
        else:
            yield number, [row[place] for place in places]


def record_names(path: Path, lines: LineReader) -> list[str]:
    """The names of the columns, or of the first record's fields; none where the file is empty.

    Raises:
        UserError: the first record is broken.
    """
    kind = kind_of(path)
    if kind == ".jsonl":
        return next((list(record) for _, record in _objects(path, lines, 0)), [])
    rows = _csv_rows(path, lines) if kind == ".csv" else _tsv_rows(lines)
    return next(([name.strip() for name in row] for _, row in rows), [])


def text_value(value: Any, where: str, name: str, errors: str) -> str:
    """A field's value as text; nothing is the empty text.

    Args:
        value: as `read_records` yields it.
        where: file and line.
        name: the field's name.
        errors: "strict" refuses half of a surrogate pair, which JSON can spell and which is no character; "replace"
            reads it as U+FFFD.

    Raises:
        UserError: it is no text.
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


def _objects(path: Path, lines: LineReader, skip: int) -> Iterator[tuple[int, dict[str, Any]]]:
    for line in lines.whole():
        if not line.text.strip():
            continue
        if skip:
            skip -= 1
            continue
        where = f"{path}:{line.number}"
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise UserError(f"{where}: broken JSON ({reason}); a .jsonl file holds one JSON object a line") from None
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


def _csv_rows(path: Path, lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_RECORD)
    reader = csv.reader((line.text for line in lines.whole()), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: broken CSV ({error}); is a quotation mark left open?") from None
