"""`--out`: records in a file that appears when it is complete; the ending of its name says the form."""

import csv
import io
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from bakeoff.cli.shared.texts import on_one_line
from bakeoff.durable import appearing
from bakeoff.errors import UserError
from bakeoff.extras import missing
from bakeoff.reading.table_reader import whole_characters

TABLES = (".jsonl", ".csv", ".tsv", ".parquet")
"""Endings of files for records with named values."""


ROWS, BYTES = 8192, 1 << 24
"""Records and bytes after which a row group ends; groups are large, as the footer in memory has an entry for each."""


Out = Annotated[
    Path | None,
    typer.Option(
        help=(
            "File to write the answers to: .jsonl, .csv, .tsv or .parquet. It appears when it is complete. Default: "
            "print them."
        )
    ),
]


Record = Mapping[str, Any]
"""A record: values by their names, of the types that JSON has."""


def plain(value: Any, where: str, errors: str) -> Any:
    """The value as JSON has it: text if its type is another, such as a date, and null in place of NaN and infinity.

    Args:
        value: a value of a row.
        where: the file, its line and the value's name.
        errors: "strict" refuses half of a surrogate pair in a text, "replace" reads it as U+FFFD.

    Raises:
        UserError: there is such a half.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(each, where, errors) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, where, errors) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, int | float) else whole_characters(str(value), where, errors)


def require_out(out: Path | None, endings: Sequence[str] = TABLES) -> None:
    """Refuse a file that records cannot be written to, before the work begins.

    Raises:
        UserError: the ending is another, the file exists, its folder does not, or `pyarrow` is not installed.
    """
    if out is None:
        return
    if out.suffix not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"{out}: answers are written to a {known}; give --out such a name, or leave --out out")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out}: is there already; choose another --out")
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")
    if out.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise missing(f"{out}: .parquet is written with pyarrow", "hub") from None


def require_columns(out: Path, records: Iterable[Record]) -> None:
    """Refuse records whose values a .parquet cannot hold, before the work begins.

    Raises:
        UserError: the values of a column have several types.
    """
    if out.suffix != ".parquet":
        return
    import pyarrow

    schema: Any = pyarrow.schema([])
    for table in _tables(_chunks(records)):
        schema = _together(schema.empty_table(), table).schema
    _require_no_empty_objects(schema)


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    rest = iter(records)
    while chunk := list(islice(rest, ROWS)):
        yield chunk


def save_records(out: Path, parts: Iterable[Iterable[Record]]) -> int:
    """Write records part by part, so that memory does not grow with their number; returns the number of records.

    Raises:
        UserError: the file cannot be made.
    """
    with appearing(out) as file:
        return _FORMS[out.suffix](file, (list(part) for part in parts))


def _json_lines(file: BinaryIO, parts: Iterator[list[Record]]) -> int:
    count = 0
    for part in parts:
        file.writelines(f"{json.dumps(dict(each), ensure_ascii=False)}\n".encode() for each in part)
        count += len(part)
    return count


def _table(line: Callable[[Iterable[str]], str]) -> Callable[[BinaryIO, Iterator[list[Record]]], int]:
    """A function that writes a line of names and a line for each record, made of its cells by `line`."""

    def write(file: BinaryIO, parts: Iterator[list[Record]]) -> int:
        count, names = 0, list[str]()
        for part in parts:
            if part and not count:
                names = list(part[0])
                file.write(line(names).encode())
            for each in part:
                count += 1
                if more := next((name for name in each if name not in names), None):
                    raise UserError(
                        f"answer {count:,} has the value '{more}', which the first has not; write them to a .jsonl"
                    )
                file.write(line(_cell(each.get(name)) for name in names).encode())
        return count

    return write


def _cell(value: Any) -> str:
    """A value in a table: None is nothing, and what is no text is JSON."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _between_tabs(cells: Iterable[str]) -> str:
    return "\t".join(on_one_line(cell, tabs=True) for cell in cells) + "\n"


def _between_commas(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)  # by which it also quotes a carriage return in a cell
    return line.getvalue().removesuffix("\r\n") + "\n"


def _write_parquet(file: BinaryIO, parts: Iterable[list[Mapping[str, Any]]]) -> int:
    """Write records with a bounded number of them in memory; returns the number of records.

    A column's type is the narrowest that holds all its values. If the first records do not show it, because they have
    only null or empty lists in the column, the file is written anew once a record shows it.

    Args:
        file: an empty file, open for reading and writing.
        parts: lists of records.
    """
    import pyarrow
    from pyarrow import parquet

    count = 0
    schema: Any = pyarrow.schema([])
    writer: Any = None
    try:
        for table in _tables(parts):
            count += len(table)
            wider = _together(schema.empty_table(), table).schema
            if writer is None:
                _require_no_empty_objects(wider)
                writer = parquet.ParquetWriter(file, wider)
            elif wider != schema:
                writer.close()
                writer = _anew(file, wider)
            schema = wider
            writer.write_table(_together(schema.empty_table(), table))
        if writer is None:
            parquet.write_table(pyarrow.table({}), file)
        else:
            writer.close()
    except BaseException:
        if writer is not None:
            with suppress(Exception):  # the first error is the one to report
                writer.close()
        raise
    return count


def _tables(parts: Iterable[list[Mapping[str, Any]]]) -> Iterator[Any]:
    """The records as tables, one for each row group."""
    import pyarrow

    held: list[Any] = []
    rows = size = 0
    for part in parts:
        if not part:
            continue
        names = dict.fromkeys(name for each in part for name in each)
        held.append(pyarrow.table({name: _column(name, [each.get(name) for each in part]) for name in names}))
        rows, size = rows + len(part), size + held[-1].nbytes
        if rows >= ROWS or size >= BYTES:
            yield _together(*held)
            held, rows, size = [], 0, 0
    if held:
        yield _together(*held)


def _column(name: str, values: list[Any]) -> Any:
    """A column with values of one type.

    Raises:
        UserError: the values have several types.
    """
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        if {type(value) for value in values if value is not None} <= {int, float}:
            raise UserError(
                f"the numbers of '{name}' are too large for a column of a .parquet; write them to a .jsonl"
            ) from None
        raise _several_types(name) from None


def _require_no_empty_objects(schema: Any) -> None:
    """Refuse a column of which nothing is known but that it holds objects without values."""
    from pyarrow import types

    for column in schema:
        waiting = [column.type]
        while waiting:
            kind = waiting.pop()
            if types.is_struct(kind) and not kind.num_fields:
                raise UserError(
                    f"the values of '{column.name}' are empty objects, which a .parquet cannot hold; write them to a "
                    ".jsonl"
                )
            waiting += [kind.field(number).type for number in range(kind.num_fields)]


def _together(*tables: Any) -> Any:
    """One table with the rows of all tables, in column types that hold the values of each.

    Raises:
        UserError: no type holds all values of a column.
    """
    import pyarrow

    schema: Any = pyarrow.schema([])
    for field in (field for table in tables for field in table.schema):
        try:
            schema = pyarrow.unify_schemas([schema, pyarrow.schema([field])], promote_options="permissive")
        except pyarrow.ArrowException:
            raise _several_types(field.name) from None
    return pyarrow.concat_tables(tables, promote_options="permissive")


def _several_types(name: str) -> UserError:
    return UserError(
        f"the values of '{name}' have several types, and a column of a .parquet one; write them to a .jsonl"
    )


def _anew(file: BinaryIO, schema: Any) -> Any:
    """Write the rows of a file anew with another schema; returns the writer for further rows."""
    import pyarrow
    from pyarrow import parquet

    with tempfile.TemporaryFile() as before:
        file.seek(0)
        shutil.copyfileobj(file, before)
        file.seek(0)
        file.truncate()
        writer = parquet.ParquetWriter(file, schema)
        with parquet.ParquetFile(before) as read:
            for group in range(read.num_row_groups):
                writer.write_table(_together(schema.empty_table(), pyarrow.table(read.read_row_group(group))))
    return writer


_FORMS: dict[str, Callable[[BinaryIO, Iterator[list[Record]]], int]] = {
    ".jsonl": _json_lines,
    ".csv": _table(_between_commas),
    ".tsv": _table(_between_tabs),
    ".parquet": _write_parquet,
}
