"""Texts, or pairs of texts, from files and standard input, one a line or one a record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from bakeoff.errors import UserError, is_utf8, shown
from bakeoff.machine.allocator import return_gaps
from bakeoff.reading.files import TEXT, LineReader, kind_of, require_file
from bakeoff.reading.pipes import ByteStream
from bakeoff.reading.records import OPTION, returned_line
from bakeoff.reading.tables import open_table

STANDARD_INPUT = Path("-")

FIRST, CHARACTERS_AT_ONCE = 32, 1 << 20
"""Number of texts that are read ahead at first, which doubles later, and the largest number of their characters."""


class TextFile:
    """The texts of a file, or its sources with targets, unchanged.

    Args:
        path: a .jsonl, .csv or .tsv (plain, .gz or .zst), .parquet or .arrow, of which columns are read. Any other file
            (plain, .gz or .zst), a pipe and `-`, standard input, have one text a line, or a pair with a tab between its
            texts.
        columns: the column of the text, or the columns of both texts of a pair.
        given: whether the user has named the columns, which only a file with columns allows.
        errors: whether invalid UTF-8 is an error, or replaced by U+FFFD.
        options: the options that name the columns, and `OPTION` where there is one, for advice in errors; empty: there
            are none.

    Attributes:
        name: the name of the file in errors.
        once: whether the texts can be read only once, from a pipe or standard input.

    Raises:
        UserError: there is no such file, it is a folder or has no columns to name, or standard input is closed.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        given: bool = False,
        errors: Literal["strict", "replace"] = "strict",
        options: Sequence[str] = ("--text-column",),
    ) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else str(path)
        self.once = path == STANDARD_INPUT or path.is_fifo() or path.is_char_device()
        if not self.once:
            require_file(path)
        self.has_columns = not self.once and kind_of(path) not in (None, TEXT)
        if given and not self.has_columns:
            what = "its lines are the texts; columns are those of" if options else "it has no columns; give one of"
            raise UserError(f"{self.name}: {what} .jsonl, .csv, .tsv, .parquet and .arrow")
        if len(set(columns)) < len(columns):
            raise UserError(f"{path}: the two texts of a pair must be different columns, not both {columns[0]}")
        self.path, self.columns, self.errors, self._options = path, columns, errors, options
        self._stream = None if not self.once else ByteStream(None if path == STANDARD_INPUT else path)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """The texts of each line or record in the file's order, including blank ones.

        Raises:
            UserError: a missing column, a broken record, a line without a tab where pairs are wanted, or invalid UTF-8.
        """
        if self.has_columns:
            yield from open_table(self.path, self.errors).texts(self.columns, self._advice)
            return
        lines = LineReader(Path(self.name), self.errors, None if self._stream is None else self._stream.lines)
        for line in lines.whole():
            text = line.text.rstrip("\r\n")
            if line.number == 1 and not line.text.endswith("\n") and (problem := returned_line(line.text)):
                raise UserError(f"{self.name}: {problem}")
            texts = [text]
            if len(self.columns) > 1:
                texts = text.split("\t") if text.strip() else [""] * len(self.columns)
            if len(texts) != len(self.columns):
                raise UserError(
                    f"{self.name}:{line.number}: {len(texts) - 1} tabs; a line is a text, a tab and the other text"
                )
            yield tuple(texts)

    @property
    def _advice(self) -> str:
        """Advice for the error about a missing column."""
        columns = [option for option in self._options if option != OPTION]
        which = "those of the pairs" if len(columns) > 1 else "the one with the texts"
        form = f", or say how it is read by {OPTION}" if OPTION in self._options else ""
        return f"; name {which} by {' and '.join(columns)}{form}" if columns else "; rename it"

    def pauses(self) -> bool:
        """Whether reading the next text would have to wait; only for pipes and standard input."""
        return self._stream is not None and self._stream.pauses()

    def count(self) -> int:
        """Read all texts and return their number, so that mistakes in the file are reported before any work.

        Raises:
            UserError: the file has no texts, or a mistake.
        """
        count = sum(1 for _ in self)
        if not count:
            raise UserError(f"{self.name}: the file holds no texts")
        return count


Texts = TextFile | Sequence[tuple[str, ...]]
"""Texts, or pairs of texts, in a file or in memory."""


def several(texts: Sequence[str]) -> Sequence[str]:
    """Refuse what is no sequence of texts: a single text, whose letters would be taken for texts, or a number.

    Raises:
        UserError: `texts` is no sequence of texts.
    """
    if isinstance(texts, str):
        raise UserError(f"texts: a list of texts is wanted, and this is one ('{texts[:30]}'); put it into a list")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # a table of pandas, polars or Arrow has its names
        kind = type(texts).__name__
        raise UserError(f"texts: a list of texts is wanted, not a {kind}, of which one column is one: TABLE['text']")
    if not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) == 0:
        raise UserError(f"texts: a list of texts is wanted, not {shown(texts, 30)} ({type(texts).__name__})")
    return texts


def in_memory(texts: Sequence[str], *others: Sequence[str]) -> list[tuple[str, ...]]:
    """Texts in memory, or pairs of them, as tuples.

    Raises:
        UserError: an argument is a single text, or a value in it is no text; or a text cannot be encoded as UTF-8, such
            as an argument of the command line that was not valid UTF-8.
    """
    pairs = list(zip(several(texts), *map(several, others), strict=True))
    for number, each in enumerate(pairs, 1):
        for value in each:
            if not isinstance(value, str):  # None and NaN stand for missing texts in tables of others
                raise UserError(f"text {number} is no text but {shown(value, 30)} ({type(value).__name__}); give a str")
        if not is_utf8("".join(each)):
            raise UserError(f"text {number} is not valid UTF-8")
    return pairs


def read_ahead(texts: Texts, most: int) -> Iterator[list[tuple[str, ...]]]:
    """Texts in their order, several at once, so that texts of similar length can share a batch.

    The first lists are short, so that answers come soon. If the writer of a pipe pauses, the texts read so far are
    yielded: a writer that waits for their answers gets them.

    Args:
        texts: the texts.
        most: the largest number of texts at once.
    """
    held: list[tuple[str, ...]] = []
    characters, limit = 0, min(FIRST, most)
    tidier = Tidier(most)
    for each in texts:
        held.append(each)
        characters += sum(map(len, each))
        full = len(held) >= limit or characters >= CHARACTERS_AT_ONCE
        if full or (isinstance(texts, TextFile) and texts.pauses()):
            yield held
            limit = min(2 * limit, most) if full else limit
            tidier.add(len(held), characters)
            held, characters = [], 0
    if held:
        yield held


class Tidier:
    """Returns unused memory of the allocator to the system, each time that a number of texts was answered.

    Args:
        most: the number of texts; fewer if they are long (CHARACTERS_AT_ONCE).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._texts = self._characters = 0

    def add(self, texts: int, characters: int = 0) -> None:
        """Count texts, and their characters, that were answered."""
        self._texts += texts
        self._characters += characters
        if self._texts >= self._most or self._characters >= CHARACTERS_AT_ONCE:
            return_gaps()
            self._texts = self._characters = 0


def is_blank(texts: Iterable[str]) -> bool:
    """Whether all texts are white space alone."""
    return not any(text.strip() for text in texts)
