"""Documents streamed from text files: .txt, .jsonl, .csv and .tsv, plain or compressed, .parquet, .arrow; `hub:`."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.reading.files import COLUMNAR, TEXT, Line, LineReader, kind_of, size_of
from bakeoff.reading.hub import HubFile
from bakeoff.reading.pieces import BEGINNING, CONTINUATION, DOCUMENT, PARAGRAPH, TextPiece, TextPosition
from bakeoff.reading.table_reader import TableReader
from bakeoff.reading.tables import open_table

_ADVICE = "; name the one with the text by --field"
_LONGEST = 1 << 15  # characters of a piece; longer paragraphs come in several


class SourceOptions(Config):
    """Options for finding documents in files."""

    document_per_line: bool = False
    """Read each line of a .txt file as a document."""
    document_separator: str | None = None
    """Regular expression for the lines of .txt files; each match ends a document and is left out."""
    field: str = "text"
    """Field of .jsonl, or column of .csv, .tsv, .parquet, .arrow and hub:, that holds the text."""
    errors: Literal["strict", "replace"] = "strict"
    """Treatment of invalid UTF-8: an error (strict), or replaced by U+FFFD (replace)."""


class TextReader:
    """Reader of the documents of files as a stream of pieces; may be read more than once.

    Attributes:
        skips: numbers of files and documents that the last reading left out, by reason.
    """

    def __init__(self, files: Sequence[Path | HubFile], options: SourceOptions, lines: bool = False) -> None:
        """Read `files` in their order.

        Args:
            files: the files.
            options: the options for finding documents.
            lines: whether each line, also an empty one, is a paragraph of one piece, whatever its length.

        Raises:
            UserError: the separator is not a regular expression, or contradicts `document_per_line`; or a file is
                .parquet or .arrow and `pyarrow` is not installed.
        """
        self.files = list(files)
        self.sizes = list(map(size_of, self.files))
        self.skips: Counter[str] = Counter()
        self._options = options
        self.lines = lines
        self._separator: re.Pattern[str] | None = None
        self.separated = False  # whether the separator occurs anywhere
        self._done = 0
        self._documents = 0
        self._current: LineReader | TableReader | None = None
        for file in self.files:
            if isinstance(file, Path) and kind_of(file) in COLUMNAR:
                open_table(file)  # a missing library is reported before anything is read
                break
        if options.document_separator is not None:
            if options.document_per_line:
                raise UserError("document_separator and document_per_line exclude each other; give one of them")
            try:
                self._separator = re.compile(options.document_separator)
            except re.error as error:
                pattern = options.document_separator
                raise UserError(f"document_separator: '{pattern}' is not a regular expression ({error})") from None
            if not options.document_separator:
                raise UserError("document_separator: an empty one ends no document; leave it out")

    def like(self, files: Sequence[Path | HubFile]) -> "TextReader":
        """A reader of other files with the options of this one."""
        return TextReader(files, self._options, self.lines)

    @property
    def missed_separator(self) -> str | None:
        """The separator of documents if the text read so far does not hold it; else None."""
        return None if self.separated else self._options.document_separator

    def bytes_read(self) -> int:
        """Number of bytes on disk that have been read, of `sum(sizes)`."""
        return self._done + (self._current.position() if self._current else 0)

    def __iter__(self) -> Iterator[TextPiece]:
        """Stream all pieces; see `read`."""
        return self.read()

    def read(self, start: TextPosition = BEGINNING, stop: TextPosition | None = None) -> Iterator[TextPiece]:
        """Stream the pieces; `skips` counts empty documents, and empty files if all files are read.

        Args:
            start: the document to start with; earlier text is skipped without reading it, if possible.
            stop: the document before which to stop; None: read to the end of the text.

        Raises:
            UserError: a file is not in the format that its name says; the message has file and line.
        """
        self.skips.clear()
        if start.empty:
            self.skips["empty documents"] = start.empty
        self._documents = start.document
        self._done = sum(self.sizes[: start.file])
        self._current = None
        last = len(self.files) if stop is None else stop.file + (stop.record > 0)
        for number in range(start.file, last):
            if self.is_empty(number):
                self.skips["empty files"] += 1
                continue
            skip = start.record if number == start.file else 0
            until = stop.record if stop is not None and number == stop.file else None
            clean = self._clean_lines if self.lines else self._clean
            yield from clean(self._raw(self.files[number], skip), number, skip, until)
            self._done += self.sizes[number]
            self._current = None

    def is_empty(self, number: int) -> bool:
        """Whether a file holds nothing; False for files of the Hub of unknown size."""
        return self.sizes[number] == 0 and isinstance(self.files[number], Path)

    def _raw(self, file: Path | HubFile, skip: int) -> Iterator[tuple[int, str]]:
        """Levels and texts of a file, without its first `skip` documents."""
        if isinstance(file, HubFile) or kind_of(file) != TEXT:
            self._current = table = open_table(file, self._options.errors)
            return self._rows(table, skip)
        self._current = lines = LineReader(file, self._options.errors)
        return _behind(self._text_lines(lines) if self.lines else self._text(lines), skip)

    def _clean(self, raw: Iterator[tuple[int, str]], file: int, record: int, until: int | None) -> Iterator[TextPiece]:
        """Normalise paragraphs, drop empty ones, and cut long ones."""
        opens = CONTINUATION
        record -= 1  # the document that comes next opens with the level DOCUMENT
        for level, text in raw:
            if level == DOCUMENT:
                if opens == DOCUMENT:
                    self.skips["empty documents"] += 1
                    opens = CONTINUATION
                record += 1
                if record == until:
                    return
            opens = max(opens, level)
            words = unicodedata.normalize("NFC", text).split()
            if not words:
                continue
            clean = " ".join(words)
            position = None
            if opens == CONTINUATION:
                if text[0].isspace():
                    clean = " " + clean
            elif opens == DOCUMENT:
                position = TextPosition(file, record, self._documents, self.skips["empty documents"])
                self._documents += 1
            while len(clean) > _LONGEST:
                cut = clean.rfind(" ", 1, _LONGEST)
                cut = cut if cut > 0 else _LONGEST
                yield TextPiece(opens, clean[:cut], position)
                clean, opens, position = clean[cut:], CONTINUATION, None
            yield TextPiece(opens, clean, position)
            opens = CONTINUATION
        if opens == DOCUMENT:
            self.skips["empty documents"] += 1

    def _clean_lines(
        self, raw: Iterator[tuple[int, str]], file: int, record: int, until: int | None
    ) -> Iterator[TextPiece]:
        """Normalise lines, and drop documents of empty lines alone."""
        record -= 1
        empty: int | None = None  # lines of a document that has no word yet
        for level, text in raw:
            if level == DOCUMENT:
                self.skips["empty documents"] += empty is not None
                empty, record = 0, record + 1
                if record == until:
                    return
                continue
            clean = " ".join(unicodedata.normalize("NFC", text).split())
            if empty is None:
                yield TextPiece(PARAGRAPH, clean)
            elif not clean:
                empty += 1
            else:
                position = TextPosition(file, record, self._documents, self.skips["empty documents"])
                self._documents += 1
                first, *others = [""] * empty + [clean]
                yield TextPiece(DOCUMENT, first, position)
                yield from (TextPiece(PARAGRAPH, other) for other in others)
                empty = None
        self.skips["empty documents"] += empty is not None

    def _text(self, lines: LineReader) -> Iterator[tuple[int, str]]:
        if self._options.document_per_line:
            for line in lines.pieces():
                yield CONTINUATION if line.continues else DOCUMENT, line.text
            return
        yield DOCUMENT, ""
        held: list[str] = []  # lines of the current paragraph
        length = 0
        for line in lines.pieces():
            for boundary, text in ((False, line.text),) if self._separator is None else self._separated(line):
                if boundary or not (text.strip() or line.continues):
                    yield CONTINUATION, "".join(held)
                    held, length = [], 0
                    yield (DOCUMENT if boundary else PARAGRAPH), ""
                if text:
                    held.append(text)
                    length += len(text)
                if length > _LONGEST:
                    # Hold back the last line end, so that the rest is known to follow a space.
                    yield CONTINUATION, "".join(held).rstrip()
                    held, length = [" "] if held[-1][-1].isspace() else [], 0
        yield CONTINUATION, "".join(held)

    def _text_lines(self, lines: LineReader) -> Iterator[tuple[int, str]]:
        if not self._options.document_per_line:
            yield DOCUMENT, ""
        for line in lines.whole():
            if self._options.document_per_line:
                yield DOCUMENT, ""
            for boundary, text in ((False, line.text),) if self._separator is None else self._separated(line):
                if boundary:
                    yield DOCUMENT, ""
                if text or not boundary:
                    yield PARAGRAPH, text

    def _separated(self, line: Line) -> Iterator[tuple[bool, str]]:
        """Whether a separator stands before each part of a line between separators, and the part."""
        assert self._separator is not None
        body = line.text.rstrip("\r\n")
        start = 0
        boundary = False
        for match in self._separator.finditer(body):
            if match.end() == match.start() and body:
                continue
            if boundary or match.start() > start:
                yield boundary, body[start : match.start()]
            boundary, start = True, match.end()
            self.separated = True
        rest = line.text[start:]
        yield boundary, rest if rest.strip() or not boundary else ""

    def _rows(self, table: TableReader, skip: int) -> Iterator[tuple[int, str]]:
        for (text,) in table.texts([self._options.field], _ADVICE, skip):
            yield from _paragraphs(text, self.lines)


def _paragraphs(value: str, lines: bool) -> Iterator[tuple[int, str]]:
    """Levels and texts of a document, whose paragraphs are separated by line ends; lines may end with one more."""
    yield DOCUMENT, ""
    for paragraph in (value.removesuffix("\n") if lines else value).split("\n"):
        yield PARAGRAPH, paragraph


def _behind(raw: Iterator[tuple[int, str]], skip: int) -> Iterator[tuple[int, str]]:
    """The levels and texts after the first `skip` documents of a file."""
    opened = 0
    for level, text in raw:
        opened += level == DOCUMENT
        if opened > skip:
            yield level, text
            yield from raw
