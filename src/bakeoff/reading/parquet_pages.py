"""The pages of a Parquet file by their headers, before any of them is decompressed.

A page that takes a kilobyte in the file may say that it has two gigabytes, and a page of a dictionary may hold one
value that every row repeats. Headers are structs of Thrift's compact protocol (github.com/apache/parquet-format).
"""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

_DICTIONARY = 2
"""The type of a dictionary's page."""
_HEADER = 1 << 16
"""Bytes in which a header is looked for; it has some dozens, and statistics of at most two values."""
_DEEPEST = 8
"""The deepest nesting of a header's structs."""


class Page(NamedTuple):
    """A page of a column."""

    dictionary: bool
    """Whether it is a dictionary."""
    size: int
    """Its bytes when it is decompressed."""


def pages(file: io.BufferedReader, column: Any) -> Iterator[Page]:
    """The pages of one column in one row group.

    Args:
        file: the Parquet file; its position is changed.
        column: pyarrow's metadata of the column in the row group.

    Raises:
        ValueError: a header is no header.
    """
    begins = [column.data_page_offset, *([column.dictionary_page_offset] if column.has_dictionary_page else [])]
    position = min(begins)
    end = position + column.total_compressed_size
    while position < end:
        file.seek(position)
        header = _Compact(file.read(_HEADER))
        fields = header.struct()
        kind, size, stored = (fields.get(number) for number in (1, 2, 3))
        if kind is None or size is None or stored is None or size < 0 or stored < 0:
            raise ValueError("a page's header is damaged")
        yield Page(kind == _DICTIONARY, size)
        position += header.position + stored


class _Compact:
    """A reader of Thrift's compact protocol, which keeps the whole numbers of the outermost struct."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def struct(self, depth: int = 0) -> dict[int, int]:
        if depth > _DEEPEST:
            raise ValueError("structs within structs without end")
        numbers: dict[int, int] = {}
        number = 0
        while (first := self._byte()) != 0:
            number = number + (first >> 4) if first >> 4 else self._zigzag()
            value = self._value(first & 15, depth)
            if value is not None:
                numbers[number] = value
        return numbers

    def _value(self, kind: int, depth: int) -> int | None:
        """Read a value of a type; only whole numbers are returned."""
        if kind in (1, 2):  # true and false, which the type says
            return None
        if kind == 3:
            self._byte()
        elif kind in (4, 5, 6):
            return self._zigzag()
        elif kind == 7:
            self._skip(8)
        elif kind == 8:
            self._skip(self._varint())
        elif kind in (9, 10):
            first = self._byte()
            count = first >> 4 if first >> 4 < 15 else self._varint()
            for _ in range(min(count, len(self.data))):
                self._byte() if first & 15 in (1, 2) else self._value(first & 15, depth)
        elif kind == 12:
            self.struct(depth + 1)
        else:
            raise ValueError(f"a value of the type {kind} in a page's header")
        return None

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.position - 1]

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise ValueError("a page's header ends too early")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
