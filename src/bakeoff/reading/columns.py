"""Columns of Parquet and Arrow files, the forms in which the Hugging Face library `datasets` keeps its data."""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.extras import missing
from bakeoff.reading.class_names import NamedField, features_of, field_of
from bakeoff.reading.fields import require_single
from bakeoff.reading.files import kind_of
from bakeoff.reading.parquet_pages import pages
from bakeoff.reading.table_reader import TableReader
from bakeoff.regular_files import open_regular

_ROWS = 256  # rows of a Parquet file that are held at once, fewer where values may be long
_AT_ONCE = 1 << 26
"""Bytes of values that are held at once, unless one value has more."""
LARGEST_PAGE = 1 << 28
"""Largest number of bytes of a decompressed page of a Parquet file, and of a row's value; pages usually have a
megabyte."""
_LEAVES = 1 << 20
"""Numbers or texts in lists that are held at once, unless one row has more."""


class ColumnReader(TableReader):
    """Reader of the columns of a file; text that is stored as bytes is decoded.

    `translation.de` is `de` of the column `translation`; a class that `datasets` stored as a number comes by its name.
    """

    path: Path

    def __init__(self, path: Path, errors: str) -> None:
        """Read `path`; `errors` is "strict" or "replace" for invalid UTF-8.

        Raises:
            UserError: `pyarrow` is not installed.
        """
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise missing(f"{path}: {kind_of(path)} is read with pyarrow", "hub") from None
        super().__init__(path, errors)
        self._position = 0

    @override
    def names(self) -> list[str]:
        with self._opened() as raw:
            if kind_of(self.path) == ".parquet":
                from pyarrow import parquet

                return list(parquet.read_schema(raw).names)
            with _arrow_file(raw) as (schema, _):
                return list(schema.names)

    @override
    def position(self) -> int:
        return self._position

    @override
    def rows(self, names: Sequence[str], advice: str = "", skip: int = 0) -> Iterator[tuple[int, list[Any]]]:
        row = 0
        with self._opened() as raw:
            batches = self._parquet if kind_of(self.path) == ".parquet" else self._arrow
            for fields, batch in batches(raw, names, advice):
                passed = min(len(batch), skip - row) if row < skip else 0
                row += passed
                columns = [batch.column(field.column).slice(passed) for field in fields]
                for pieces in _pieces(columns):
                    for cells in zip(*(_as_bytes(piece).to_pylist() for piece in pieces), strict=True):
                        row += 1
                        values = [self._decoded(*each, row) for each in zip(cells, fields, strict=True)]
                        both = zip(fields, values, strict=True)
                        yield row, [field.value(value, self.path, row) for field, value in both]

    @contextmanager
    def _opened(self) -> Iterator[io.BufferedReader]:
        """The file; the library's errors on it become a line."""
        import pyarrow

        try:
            with open_regular(self.path) as raw:
                yield raw
        except (pyarrow.ArrowException, ValueError, OSError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{self.path}: cannot be read ({reason}); is it whole, and what its name says?") from None

    def _parquet(
        self, raw: io.BufferedReader, names: Sequence[str], advice: str
    ) -> Iterator[tuple[list[NamedField], Any]]:
        from pyarrow import parquet

        size = os.fstat(raw.fileno()).st_size
        with parquet.ParquetFile(raw, buffer_size=1 << 20) as file:
            fields = self._fields(names, file.schema_arrow, advice)
            columns = _columns_of(fields)
            done = 0
            for group in range(file.metadata.num_row_groups):
                described = file.metadata.row_group(group)
                if not described.num_rows:  # a table without rows has a row group, and no page in it
                    continue
                rows = min((self._rows_at_once(raw, described, column) for column in columns), default=1)
                for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                    yield fields, batch
                    done += len(batch)
                    self._position = size * done // file.metadata.num_rows

    def _rows_at_once(self, raw: io.BufferedReader, group: Any, name: str) -> int:
        """The number of rows of a row group that are read at once, by the sizes that its pages have in the end.

        Raises:
            UserError: a page is too large.
        """
        rows, position = _ROWS, raw.tell()
        for number in range(group.num_columns):
            column = group.column(number)
            if not f"{column.path_in_schema}.".startswith(f"{name}."):
                continue
            for page in pages(raw, column):
                if page.size > LARGEST_PAGE:
                    raise UserError(
                        f"{self.path}: {name}: a page of {page.size:,} bytes, where at most {LARGEST_PAGE:,} are "
                        "read; write the file with smaller pages (data_page_size of pyarrow)"
                    )
                if page.dictionary:  # each row may have the longest value
                    rows = min(rows, _AT_ONCE // max(1, page.size))
            rows = min(rows, _LEAVES * group.num_rows // max(1, column.num_values))
        raw.seek(position)
        return max(1, rows)

    def _arrow(
        self, raw: io.BufferedReader, names: Sequence[str], advice: str
    ) -> Iterator[tuple[list[NamedField], Any]]:
        with _arrow_file(raw) as (schema, _):
            fields = self._fields(names, schema, advice)
        with _arrow_file(raw, sorted(map(schema.get_field_index, _columns_of(fields)))) as (_, batches):
            for batch in batches:
                yield fields, batch
                self._position = raw.tell()

    def _fields(self, names: Sequence[str], schema: Any, advice: str) -> list[NamedField]:
        features = features_of(schema.metadata)
        fields = [field_of(name, schema.names, features, str(self.path), advice) for name in names]
        require_single(names, schema.names, str(self.path))
        return fields

    def _decoded(self, value: Any, field: NamedField, row: int) -> Any:
        """The value as text if it is bytes."""
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode("utf-8", self.errors)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.path}, row {row}: '{field.column}' is not valid UTF-8 (byte 0x{value[error.start]:02x}); mend "
                "the file, or give --errors replace to read each such byte as �, where the command has it"
            ) from None


def _columns_of(fields: Sequence[NamedField]) -> list[str]:
    """The columns that fields are in, each once."""
    return list(dict.fromkeys(field.column for field in fields))


@contextmanager
def _arrow_file(raw: io.BufferedReader, columns: list[int] | None = None) -> Iterator[tuple[Any, Iterable[Any]]]:
    """The schema of an Arrow file, and its batches in some columns, None: in all of them.

    Arrow knows two forms; `datasets` writes the one that can be streamed, other programs often the other.
    """
    from pyarrow import ipc

    raw.seek(0)
    streamed = raw.read(6) != b"ARROW1"
    raw.seek(0)
    options = ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    with (ipc.open_stream if streamed else ipc.open_file)(raw, options=options) as file:
        yield file.schema, file if streamed else map(file.get_batch, range(file.num_record_batches))


def _pieces(columns: Sequence[Any]) -> Iterator[list[Any]]:
    """Pieces of columns of equal length whose values, one object each, take a bounded memory."""
    import pyarrow

    rows = length = max(map(len, columns), default=0)
    for column in columns:
        repeated = pyarrow.types.is_dictionary(column.type)
        size = column.dictionary.nbytes if repeated else column.nbytes // max(1, length)
        rows = min(rows, _AT_ONCE // max(1, size))
    for begin in range(0, length, max(1, rows)):
        yield [column.slice(begin, max(1, rows)) for column in columns]


def _as_bytes(column: Any) -> Any:
    """A column of text as bytes, since the library's error for invalid UTF-8 names no row; other columns unchanged."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)
    return column.cast(pyarrow.large_binary()) if text else column
