"""Records with named fields: the lines of a .jsonl file, the rows of a .csv or .tsv file."""

import csv
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.json_files import JsonError, RepeatedKey, json_value
from bakeoff.reading.decoding import NUL_BYTES
from bakeoff.reading.fields import column_and_keys, existing, require_single, within
from bakeoff.reading.files import LONGEST_RECORD, LineReader, kind_of
from bakeoff.reading.table_reader import TableReader

Separator = Literal["auto", "tab", "comma", "semicolon"]
"""Separator of the cells in a row; auto: the file's name says it."""

_OBJECTS = "a .jsonl file holds one JSON object a line"
_SIGNS = {"tab": "\t", "comma": ",", "semicolon": ";"}
_REWRITTEN = {"tab": "call it .tsv", "comma": "call it .csv", "semicolon": "write it with commas"}
"""What to do with a file of another separator than its name says, where no option can say it."""
OPTION = "--option"
"""The option that says how a table is read, where advice names it."""
_HEADERLESS = "; if the first row is data, give --option header=false, and columns by number from 1"
_NAMED = "; the first row has to name the columns"


class RecordStyle(NamedTuple):
    """Style of a file's rows, as far as its name does not say it."""

    header: bool = True
    """Whether the first row names the columns; false: their names are their numbers, from 1."""
    separator: Separator = "auto"
    """Separator of cells. tab: tabs, as in a .tsv, whatever the file's name; comma or semicolon: as in a .csv; auto: as
    the name says."""
    extra_columns: bool = False
    """Whether rows may have more columns than the first row."""
    adjustable: bool = False
    """Whether `OPTION` can say all of this, which errors then advise."""
    on_broken: Callable[[int, str], None] | None = None
    """A function that is called with line and reason of each broken record, which is skipped; None: raise an error."""


PLAIN = RecordStyle()
"""The style of a file of which only the name is known."""


class RecordReader(TableReader):
    """Reader of a .jsonl, .csv or .tsv; blank lines are skipped.

    The first line of a .csv or .tsv names the columns; each line of a .jsonl is an object. In a .tsv a quotation mark
    is text, and in one of a single column a blank line is a record with a blank text. The rows of a .jsonl that are
    passed over are not parsed.

    Args:
        path: the file, whose name tells the kind.
        errors: "strict" or "replace" for invalid UTF-8.
        encoding: the encoding of its lines.
        style: the style of its rows.
    """

    has_lines = True

    def __init__(self, path: Path, errors: str, encoding: str = "utf-8", style: RecordStyle = PLAIN) -> None:
        super().__init__(path, errors)
        self._lines, self._style = LineReader(path, errors, encoding=encoding), style
        self._kind = {"auto": kind_of(path), "tab": ".tsv"}.get(style.separator, ".csv")

    @override
    def position(self) -> int:
        return self._lines.position()

    @override
    def names(self) -> list[str]:
        if self._kind == ".jsonl":
            return next((list(record) for _, record in self._objects()), [])
        return self._header(next((row for _, row in self._cells()), []))

    @override
    def whole(self) -> Iterator[tuple[int, dict[str, Any]]]:
        if self._kind == ".jsonl":
            yield from self._objects()
            return
        names = self.names()
        if names.count("") > 1:  # as spreadsheets leave them beside a table
            self._require_nothing_in([index for index, name in enumerate(names) if not name])
            names = [name for name in names if name]
        yield from self.by_name(names)

    @override
    def rows(self, names: Sequence[str], advice: str = "", skip: int = 0) -> Iterator[tuple[int, list[Any]]]:
        if self._kind == ".jsonl":
            known = False  # whether a record before had all fields, which are misspelt otherwise
            for number, record in self._objects(skip):
                if known and self._style.on_broken is not None and (name := _lacking(record, names)) is not None:
                    self._style.on_broken(number, f"has no field '{name}'")
                    continue
                where = f"{self.path}:{number}"
                yield number, [_value(record, name, where, advice) for name in names]
                known = True
            return
        style = self._style
        indices: list[int] | None = None
        header: list[str] = []
        for number, row in self._cells():
            if indices is None:
                header = self._header(row)
                indices = self._indices(names, header, row, number, advice)
                if style.header:
                    continue
            if len(row) < len(header) or (any(row[len(header) :]) and not style.extra_columns):
                # A row that is too long or too short has probably moved a value to another column.
                reason = f"the row has {counted(len(row), 'column')}, the first line {len(header)}"
                if style.on_broken is None:
                    other = _other_separator(header)
                    what = (
                        "mend it" if other is None else f"if cells stand between {other}s, {self._way(other, advice)}"
                    )
                    raise UserError(f"{self.path}:{number}: {reason}; {what}")
                style.on_broken(number, "has another number of columns than the first")
            elif skip:
                skip -= 1
            else:
                yield number, [row[index] for index in indices]

    def _require_nothing_in(self, columns: Sequence[int]) -> None:
        """Refuse a value in one of several columns without a name, which could not be told apart."""
        for number, row in self._cells():
            if value := next((row[index] for index in columns if index < len(row) and row[index].strip()), None):
                raise UserError(
                    f"{self.path}:{number}: {len(columns)} columns have no name, and one of them holds '{value[:30]}'; "
                    "name all but one"
                )

    def _header(self, row: Sequence[str]) -> list[str]:
        """The names of the columns of a file with this first row."""
        return [name.strip() for name in row] if self._style.header else [str(n + 1) for n in range(len(row))]

    def _indices(
        self, names: Sequence[str], header: list[str], row: Sequence[str], number: int, advice: str
    ) -> list[int]:
        """The indices of the named columns in a file with this first row, which stands on line `number`."""
        where = f"{self.path}:{number}"
        if problem := next((problem for cell in row if "\n" not in cell and (problem := foreign_line(cell))), None):
            raise UserError(f"{where}: {problem}")
        absent = next((name for name in names if name not in header), None)
        if self._style.header and absent is not None and (other := _other_separator(header)):
            raise UserError(
                f"{where}: no column '{absent}' (columns here: {header[0][:80]}); if its cells stand between {other}s, "
                f"{self._way(other, advice)}"
            )
        if not self._style.header:
            advice = advice or "; columns have numbers, from 1"
        advice = advice or (_HEADERLESS if self._style.adjustable else _NAMED)
        indices = [header.index(existing(name, header, where, "column", advice)) for name in names]
        require_single(names, header, where)
        return indices

    def _way(self, separator: str, advice: str) -> str:
        """What to do with a file whose cells stand between other separators than it is read with."""
        if self._style.separator != "auto":
            return f"write it like the others, since separator={self._style.separator} is for all files"
        if self._style.adjustable or OPTION in advice:
            return f"give {OPTION} separator={separator}"
        return _REWRITTEN[separator]

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        """The last line of each row of a .csv or .tsv, and its cells."""
        if self._kind == ".csv":
            return _csv_rows(self.path, self._lines, _SIGNS.get(self._style.separator, ","))
        return _tsv_rows(self._lines)

    def _objects(self, skip: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line of each object of a .jsonl, and the object."""
        for line in self._lines.whole():
            if not line.text.strip():
                continue
            if skip:
                skip -= 1
                continue
            where = f"{self.path}:{line.number}"
            try:
                record = json_value(line.text, any_number=True)
            except JsonError as error:
                repeated = isinstance(error, RepeatedKey)
                if self._style.on_broken is not None:
                    self._style.on_broken(line.number, "has a key twice" if repeated else "is broken JSON")
                    continue
                problem = f"{error.problem}; mend it" if repeated else f"broken JSON ({error.problem}); {_OBJECTS}"
                raise UserError(f"{where}: {foreign_line(line.text) or problem}") from None
            if not isinstance(record, dict):
                if self._style.on_broken is not None:
                    self._style.on_broken(line.number, "is no JSON object")
                    continue
                raise UserError(f"{where}: not a JSON object; {_OBJECTS}")
            yield line.number, record


def _lacking(record: dict[str, Any], names: Sequence[str]) -> str | None:
    """The first of the names for which an object has no field, see `_value`; None: it has all."""
    return next((name for name in names if name not in record and name.split(".")[0] not in record), None)


def _value(record: dict[str, Any], name: str, where: str, advice: str) -> Any:
    """The value of a field of an object; `translation.de` is `de` of the object in the field `translation`."""
    if name in record:
        return record[name]
    field, keys = column_and_keys(name, list(record), where, "field", advice)
    return within(record[field], keys, where, field)


def foreign_line(line: str) -> str | None:
    """The mistake in a line from another system (NUL bytes, carriage returns), and advice; None: there is none."""
    if "\0" in line:
        return NUL_BYTES
    return returned_line(line)


def returned_line(line: str) -> str | None:
    """The mistake in a line that holds carriage returns, and advice; None: it holds none but at its end."""
    if "\r" not in line.rstrip("\r\n"):
        return None
    return "lines end with a carriage return alone; convert them: tr '\\r' '\\n' < FILE"


def _other_separator(header: Sequence[str]) -> str | None:
    """The name of another separator that stands in the only cell of a first row; None: there is none."""
    return next((name for name, sign in _SIGNS.items() if len(header) == 1 and sign in header[0]), None)


def _tsv_rows(lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    columns = 0
    for line in lines.whole():
        row = line.text.rstrip("\r\n").split("\t")
        if row != [""] or columns == 1:
            columns = columns or len(row)
            yield line.number, row


def _csv_rows(path: Path | str, lines: LineReader, separator: str) -> Iterator[tuple[int, list[str]]]:
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
            if row:  # a blank line is no row, as to other readers; a blank cell of one column is "" in quotation marks
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
