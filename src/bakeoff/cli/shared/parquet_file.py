"""Records in a .parquet, in columns whose types are those of their values."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO

from bakeoff.errors import UserError

ROWS, BYTES = 8192, 1 << 24
"""Records and bytes after which a row group ends; groups are large, as the footer in memory has an entry for each."""


def write_parquet(file: BinaryIO, parts: Iterable[list[Mapping[str, Any]]]) -> int:
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


def require_columns(records: Iterable[Mapping[str, Any]]) -> None:
    """Refuse records whose values a .parquet cannot hold, before the work begins.

    Raises:
        UserError: the values of a column have several types, are too large, or are empty objects.
    """
    import pyarrow

    schema: Any = pyarrow.schema([])
    for table in _tables(_chunks(records)):
        schema = _together(schema.empty_table(), table).schema
    _require_no_empty_objects(schema)


def _chunks(records: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    rest = iter(records)
    while chunk := list(islice(rest, ROWS)):
        yield chunk
