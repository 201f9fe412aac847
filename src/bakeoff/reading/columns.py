"""Columns of Parquet and Arrow files, the forms in which the Hugging Face library `datasets` keeps its data."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.extras import missing
from bakeoff.reading.class_names import NamedField, features_of, field_of
from bakeoff.reading.files import kind_of
from bakeoff.reading.parquet_pages import pages
from bakeoff.regular_files import open_regular

_ROWS = 256  # rows of a Parquet file that are held at once, fewer where values may be long
_AT_ONCE = 1 << 26
"""Bytes of values that are held at once, unless one value has more."""
LARGEST_PAGE = 1 << 28
"""Largest number of bytes of a decompressed page of a Parquet file, and of a row's value; pages usually have a
megabyte."""
_LEAVES = 1 << 20
"""Numbers or texts in lists that are held at once, unless one row has more."""


class ColumnReader:
    """Reader of one column of a file."""

    def __init__(self, path: Path, errors: str) -> None:
        """Read `path`; `errors` is "strict" or "replace" for invalid UTF-8.

        Raises:
            UserError: `pyarrow` is not installed.
        """
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise missing(f"{path}: {kind_of(path)} is read with pyarrow", "hub") from None
        self._path = path
        self._errors = errors
        self._position = 0

    def names(self) -> list[str]:
        """The names of the file's columns.

        Raises:
            UserError: the file is unreadable or damaged.
        """
        import pyarrow
        from pyarrow import ipc, parquet

        try:
            with open_regular(self._path) as raw:
                if kind_of(self._path) == ".parquet":
                    return list(parquet.read_schema(raw).names)
                streamed = raw.read(6) != b"ARROW1"
                raw.seek(0)
                with ipc.open_stream(raw) if streamed else ipc.open_file(raw) as file:
                    return list(file.schema.names)
        except (pyarrow.ArrowException, OSError) as error:
            raise _unreadable(self._path, error) from None

    def position(self) -> int:
        """Approximate number of bytes on disk that have been read."""
        return self._position

    def values(self, name: str, advice: str = "", skip: int = 0) -> Iterator[tuple[int, Any]]:
        """The number of each row, from 1, and its value of one column; text that is stored as bytes is decoded.

        `translation.de` is `de` of the column `translation`; a class that `datasets` stored as a number comes by its
        name.

        Args:
            name: the column.
            advice: advice for the error about a missing column.
            skip: number of rows to pass over.

        Raises:
            UserError: the column is missing, the file is unreadable or damaged, or has invalid UTF-8 (with its row).
        """
        import pyarrow

        row = 0
        try:
            with open_regular(self._path) as raw:
                batches = self._parquet if kind_of(self._path) == ".parquet" else self._arrow
                for field, column in batches(raw, name, advice):
                    passed = min(len(column), skip - row) if row < skip else 0
                    row += passed
                    for piece in _pieces(column.slice(passed)):
                        for value in _as_bytes(piece).to_pylist():
                            row += 1
                            value = self._decode(value, row) if isinstance(value, bytes) else value
                            yield row, field.value(value, self._path, row)
        except (pyarrow.ArrowException, ValueError, OSError) as error:
            raise _unreadable(self._path, error) from None

    def _parquet(self, raw: io.BufferedReader, name: str, advice: str) -> Iterator[tuple[NamedField, Any]]:
        from pyarrow import parquet

        size = os.fstat(raw.fileno()).st_size
        with parquet.ParquetFile(raw, buffer_size=1 << 20) as file:
            field = self._field(name, file.schema_arrow, advice)
            done = 0
            for group in range(file.metadata.num_row_groups):
                rows = self._rows_at_once(raw, file.metadata.row_group(group), field.column)
                for batch in file.iter_batches(rows, row_groups=[group], columns=[field.column], use_threads=False):
                    yield field, batch.column(field.column)
                    done += len(batch)
                    self._position = size * done // file.metadata.num_rows

    def _rows_at_once(self, raw: io.BufferedReader, group: Any, name: str) -> int:
        """The number of rows of a row group that are read at once, by the sizes that its pages have in the end.

        Raises:
            UserError: a page is too large.
        """
        rows, place = _ROWS, raw.tell()
        for number in range(group.num_columns):
            column = group.column(number)
            if not f"{column.path_in_schema}.".startswith(f"{name}."):
                continue
            for page in pages(raw, column):
                if page.size > LARGEST_PAGE:
                    raise UserError(
                        f"{self._path}: {name}: a page of {page.size:,} bytes, where at most {LARGEST_PAGE:,} are "
                        "read; write the file with smaller pages (data_page_size of pyarrow)"
                    )
                if page.dictionary:  # each row may have the longest value
                    rows = min(rows, _AT_ONCE // max(1, page.size))
            rows = min(rows, _LEAVES * group.num_rows // max(1, column.num_values))
        raw.seek(place)
        return max(1, rows)

    def _arrow(self, raw: io.BufferedReader, name: str, advice: str) -> Iterator[tuple[NamedField, Any]]:
        from pyarrow import ipc

        # Arrow knows two forms; `datasets` writes the one that can be streamed, other programs often the other.
        streamed = raw.read(6) != b"ARROW1"
        raw.seek(0)
        with ipc.open_stream(raw) if streamed else ipc.open_file(raw) as file:
            schema = file.schema
            field = self._field(name, schema, advice)
        raw.seek(0)
        options = ipc.IpcReadOptions(included_fields=[schema.get_field_index(field.column)], use_threads=False)
        with ipc.open_stream(raw, options=options) if streamed else ipc.open_file(raw, options=options) as file:
            for batch in file if streamed else map(file.get_batch, range(file.num_record_batches)):
                yield field, batch.column(field.column)
                self._position = raw.tell()

    def _field(self, name: str, schema: Any, advice: str) -> NamedField:
        return field_of(name, schema.names, features_of(schema.metadata), str(self._path), advice)

    def _decode(self, value: bytes, row: int) -> str:
        try:
            return value.decode("utf-8", self._errors)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self._path}, row {row}: not valid UTF-8 (byte 0x{value[error.start]:02x}); mend the file, or give "
                "--errors replace to read each such byte as �"
            ) from None


def _pieces(column: Any) -> Iterator[Any]:
    """Pieces of a column whose values, one object each, take a bounded memory."""
    import pyarrow

    repeated = pyarrow.types.is_dictionary(column.type)
    size = column.dictionary.nbytes if repeated else column.nbytes // max(1, len(column))
    rows = max(1, _AT_ONCE // max(1, size))
    for begin in range(0, len(column), rows):
        yield column.slice(begin, rows)


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return UserError(f"{path}: cannot be read ({reason}); is it whole, and what its name says?")


def _as_bytes(column: Any) -> Any:
    """A column of text as bytes, since the library's error for invalid UTF-8 names no row; other columns unchanged."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    return column.cast(pyarrow.large_binary()) if text else column
