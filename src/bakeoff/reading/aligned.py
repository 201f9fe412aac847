"""Pairs of texts that are translations of each other, from files whose lines or records belong together."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from bakeoff.config import Config
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.reading.files import TEXT, LineReader, kind_of, require_file, size_of
from bakeoff.reading.table_reader import TableReader
from bakeoff.reading.tables import open_table


class PairOptions(Config):
    """Options for finding the two texts of a pair in files."""

    source_field: str = "source"
    """Field of .jsonl, or column of .csv, .tsv, .parquet and .arrow, that holds the source."""
    target_field: str = "target"
    """The field that holds the target."""
    errors: Literal["strict", "replace"] = "strict"
    """Treatment of invalid UTF-8: an error (strict), or replaced by U+FFFD (replace)."""


class Pair(NamedTuple):
    """A text and its translation, both in NFC with single spaces; either may be empty."""

    source: str
    target: str


class PairReader:
    """Reader of pairs: item i of the n-th file of sources belongs to item i of the n-th file of targets.

    An item is a field of a record in a .jsonl, .csv, .tsv, .parquet or .arrow, or a line of any other file; all files
    but .parquet and .arrow may be .gz or .zst.

    Attributes:
        files, sizes: all files, and their sizes in bytes on disk.
    """

    def __init__(self, sources: Sequence[Path], targets: Sequence[Path], options: PairOptions) -> None:
        """Read these files.

        Raises:
            UserError: a file is missing, the numbers of files differ, or a file would be its own translation.
        """
        if len(sources) != len(targets):
            raise UserError(
                f"{counted(len(sources), 'file')} of sources and {len(targets)} of targets; give as many --source as "
                "--target, in the same order"
            )
        self._options = options
        self._both = list(zip(sources, targets, strict=True))
        for source, target in self._both:
            same_text = kind_of(source) in (None, ".txt") or options.source_field == options.target_field
            if same_text and source.resolve() == target.resolve():
                raise UserError(f"{source}: given as its own translation; give another --target")
        self.files = [file for both in self._both for file in both]
        for file in self.files:
            require_file(file)
        self.sizes = list(map(size_of, self.files))
        self._done = 0
        self._current: list[LineReader | TableReader] = []

    def bytes_read(self) -> int:
        """Number of bytes on disk that have been read, of `sum(sizes)`."""
        return self._done + sum(reading.position() for reading in self._current)

    def __iter__(self) -> Iterator[Pair]:
        """Stream the pairs.

        Raises:
            UserError: a file is not in the format that its name says, or two files have different numbers of items.
        """
        self._done = 0
        fields = self._options.source_field, self._options.target_field
        for number, both in enumerate(self._both):
            self._current = []
            sides = [self._texts(file, field) for file, field in zip(both, fields, strict=True)]
            counts = [0, 0]
            for texts in zip_longest(*sides):
                counts = [count + (text is not None) for count, text in zip(counts, texts, strict=True)]
                if counts[0] == counts[1]:
                    yield Pair(*map(clean, texts))
            if counts[0] != counts[1]:
                units = ["lines" if kind_of(file) in (None, ".txt") else "records" for file in both]
                raise UserError(
                    f"{both[0]} has {counts[0]:,} {units[0]}, but {both[1]} {counts[1]:,} {units[1]}; each must be the "
                    "translation of the one with its number"
                )
            self._done += sum(self.sizes[2 * number : 2 * number + 2])
            self._current = []

    def _texts(self, file: Path, field: str) -> Iterator[str]:
        errors = self._options.errors
        advice = "; name those with the texts by --source-field and --target-field"
        if kind_of(file) in (None, TEXT):
            lines = LineReader(file, errors)
            self._current.append(lines)
            yield from (line.text for line in lines.whole())
            return
        table = open_table(file, errors)
        self._current.append(table)
        yield from (text for (text,) in table.texts([field], advice))


def clean(text: str) -> str:
    """The text in NFC with single spaces, and without spaces at its ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())
