"""Files of texts, or of pairs of texts, that a run is to score: one a line, or one a record."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from bakeoff.corpus.aligned import clean
from bakeoff.corpus.files import COLUMNAR, LineReader, kind_of
from bakeoff.corpus.records import read_records, text_value
from bakeoff.errors import UserError


class TextFile:
    """The texts of a file, or its sources with their targets, each NFC with runs of white space as one space.

    Args:
        path: a .jsonl, .csv or .tsv, of which columns are read, or any other file, which has one text a line and pairs
            with a tab between source and target; each plain, .gz or .zst.
        columns: the columns of the text, or of source and target.
        given: whether the user has named them, which only a file with columns allows.
        errors: invalid UTF-8 is an error, or is replaced by U+FFFD.

    Raises:
        UserError: there is no such file, or it is of a kind that cannot be read.
    """

    def __init__(
        self, path: Path, columns: Sequence[str], given: bool, errors: Literal["strict", "replace"] = "strict"
    ) -> None:
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        if kind_of(path) in COLUMNAR:
            raise UserError(f"{path}: texts are read from .txt, .jsonl, .csv or .tsv, each plain, .gz or .zst")
        self.has_columns = kind_of(path) not in (None, ".txt")
        if given and not self.has_columns:
            raise UserError(f"{path}: its lines are the texts; columns are those of .jsonl, .csv and .tsv files")
        if len(set(columns)) < len(columns):
            raise UserError(f"{path}: source and target must be different columns, not both {columns[0]}")
        self.path, self.columns, self.errors = path, columns, errors

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """The texts of each line or record, in the file's order, blank ones too.

        Raises:
            UserError: a missing column, a broken record, a line without a tab where pairs are wanted, or invalid UTF-8.
        """
        lines = LineReader(self.path, self.errors)
        if self.has_columns:
            for number, cells in read_records(self.path, lines, self.columns, self._advice):
                values = zip(self.columns, cells, strict=True)
                yield tuple(
                    clean(text_value(cell, f"{self.path}:{number}", name, self.errors)) for name, cell in values
                )
            return
        for line in lines.whole():
            texts = line.text.rstrip("\r\n").split("\t") if len(self.columns) > 1 else [line.text]
            texts = texts if line.text.strip() else [""] * len(self.columns)
            if len(texts) != len(self.columns):
                raise UserError(
                    f"{self.path}:{line.number}: {len(texts) - 1} tabs; a line is a source, a tab and its target"
                )
            yield tuple(map(clean, texts))

    def count(self) -> int:
        """How many there are, all of them read once, so that what is wrong with the file comes out before the work.

        Raises:
            UserError: there are none, or a mistake in the file.
        """
        found = sum(1 for _ in self)
        if not found:
            raise UserError(f"{self.path}: the file holds no texts")
        return found

    @property
    def _advice(self) -> str:
        if len(self.columns) > 1:
            return "; name those of the pairs by --source-column and --target-column"
        return "; name the one with the texts by --text-column"
