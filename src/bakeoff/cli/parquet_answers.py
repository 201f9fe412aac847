"""Answers in a Parquet file; the types of its columns become known as answers arrive."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

ROWS, BYTES = 8192, 1 << 24
"""Answers and bytes after which a row group ends; groups are large, as the footer in memory has an entry for each."""


def write_parquet(file: BinaryIO, parts: Iterable[list[Mapping[str, Any]]]) -> int:
    """Write answers with a bounded number of them in memory; returns the number of answers.

    A column's type is the narrowest that holds all its values. If the first answers do not show it, because they have
    only null or empty lists in the column, the file is written anew once an answer shows it.

    Args:
        file: an empty file, open for reading and writing.
        parts: lists of answers.
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
    """The answers as tables, one for each row group."""
    import pyarrow

    held: list[Any] = []
    rows = size = 0
    for part in parts:
        if not part:
            continue
        held.append(pyarrow.Table.from_pylist([dict(each) for each in part]))
        rows, size = rows + len(part), size + held[-1].nbytes
        if rows >= ROWS or size >= BYTES:
            yield _together(*held)
            held, rows, size = [], 0, 0
    if held:
        yield _together(*held)


def _together(*tables: Any) -> Any:
    """One table with the rows of all tables, in column types that hold the values of each."""
    import pyarrow

    return pyarrow.concat_tables(tables, promote_options="permissive")


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
