"""Finding text files, and reading their lines within a bounded memory, whatever their size and compression."""

import codecs
import glob
import gzip
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from bakeoff.errors import UserError, at_home, path_of, require_utf8
from bakeoff.reading.decoding import NUL_BYTES, decompressed, unmarked_wide, utf8_of, wide_mark, wide_mistake
from bakeoff.reading.hub import HubFile, hub_files, on_hub
from bakeoff.regular_files import open_regular, require_regular

TEXT = ".txt"
KINDS = (TEXT, ".jsonl", ".csv", ".tsv")
COLUMNAR = (".parquet", ".arrow")
_JSON = ".json"
_COMPRESSIONS = (".gz", ".zst")
_TRAIN = ".train"
"""The ending of BabyLM's texts, which are read as those that end in `.txt`."""
_PACKED = (".xz", ".bz2", ".zip", ".7z", ".tar", ".tgz", ".lz4", ".rar")
"""Endings of archives, and of files that are packed in a way that is not read."""
_SUPPORTED = f"{', '.join((TEXT, _TRAIN, *KINDS[1:]))}, each plain, .gz or .zst, and {', '.join(COLUMNAR)}"
_PIECE = 1 << 16  # bytes of a line that are held at once
LONGEST_RECORD = 1 << 27
"""Largest length of a line of a .jsonl, .csv or .tsv file in bytes; a record is parsed as a whole."""
_LOOKED_AT = 20
"""Lines at a file's beginning of which it is asked whether they are of UTF-16; the first ones may be short."""
JSON_LINES = "write one object a line (jq -c '.[]' FILE makes them of an array)"
"""Advice for a JSON file that is not in JSON lines."""


def kind_of(path: Path | HubFile) -> str | None:
    """The kind of a file: `.txt`, `.jsonl`, `.csv` or `.tsv`, whatever the compression, `.parquet`, `.arrow`, or None.

    A .json is a .jsonl if it has an object in its first line, and a .train is a .txt.
    """
    if isinstance(path, HubFile):
        return None
    suffix = _suffix(path)
    if suffix == _JSON:
        return ".jsonl" if _begins_with_object(path) else None
    if suffix == _TRAIN:
        return TEXT
    if suffix in COLUMNAR and path.suffix.lower() != suffix:  # columns are compressed inside of the file
        return None
    return suffix if suffix in (*KINDS, *COLUMNAR) else None


def _suffix(path: Path) -> str:
    """The suffix of the name, without that of a compression."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in _COMPRESSIONS else suffix


def _begins_with_object(path: Path) -> bool:
    """Whether the first line that is not blank is a JSON object by itself, as in JSON lines."""
    try:
        for _, data in LineReader(path, "replace").raw_lines(LONGEST_RECORD):
            if data.strip():
                return isinstance(json.loads(data), dict)
    except (UserError, ValueError, RecursionError):  # the reader of the file raises the error
        pass
    return False


def require_file(path: Path) -> None:
    """Refuse a path that is no file.

    Raises:
        UserError: there is nothing, or a folder.
    """
    if not path.is_file():
        raise UserError(f"{path}: {'a folder; give a file' if path.is_dir() else 'no such file'}")


def size_of(file: Path | HubFile) -> int:
    """The number of a file's bytes on disk; 0 where it is not known.

    Raises:
        UserError: the file cannot be looked at.
    """
    if isinstance(file, HubFile):
        return file.bytes
    try:
        return file.stat().st_size
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None


def find_files(texts: str | Path | Sequence[str | Path], skips: Counter[str]) -> list[Path | HubFile]:
    """All text files of files, folders (searched recursively, hidden files left out), globs and `hub:` names.

    Args:
        texts: the user's files, folders, globs and `hub:` names.
        skips: counts files of unsupported kinds in folders.

    Returns:
        Files in the given order, sorted within a folder or glob, each file once.

    Raises:
        UserError: a path does not exist, is of no supported kind, or a folder or glob holds no text or cannot be read.
    """
    texts = [texts] if isinstance(texts, str | Path) or not isinstance(texts, Iterable) else texts
    files: dict[object, Path | HubFile] = {}
    for text in texts:
        if text == "":  # which Path would take for the current folder
            raise UserError("one of the texts has an empty name; name files or folders")
        if isinstance(text, str) and on_hub(text):
            files.update((str(file), file) for file in hub_files(text))
            continue
        path = at_home(path_of(text, "texts"))
        if path.is_dir():
            matches = _in_folder(path, skips)
        elif path.exists():
            if kind_of(path) is None:
                if _suffix(path) == _JSON:
                    raise UserError(f"{path}: no object stands in its first line; {JSON_LINES}")
                packed = path.suffix.lower() in (*_PACKED, *_COMPRESSIONS)
                way = "unpack it" if packed else "call it .txt if it is plain text"
                raise UserError(f"{path}: not a text file that can be read; supported are {_SUPPORTED}; {way}")
            matches = [path]
        elif glob.has_magic(str(path)):
            matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
            matches = [file for file in matches if file.is_file() and kind_of(file)]
            if not matches:
                raise UserError(f"{path}: no text file matches; supported are {_SUPPORTED}")
        else:
            raise UserError(f"{path}: no such file or folder")
        for file in matches:
            require_utf8(str(file))
            try:
                require_regular(file)
            except OSError as error:
                _refuse(error)
            files.setdefault(file.resolve(), file)
    if not files:
        raise UserError("no text was given; name files, folders or globs")
    return list(files.values())


def _in_folder(folder: Path, skips: Counter[str]) -> list[Path]:
    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            # What `datasets` keeps beside its data are results of earlier work on it, not text.
            if name.startswith(".") or (name.startswith("cache-") and name.endswith(".arrow")):
                continue
            # A .json is left out: it may be text, or settings beside the text, and its name does not tell.
            if _suffix(Path(name)) in (*KINDS, _TRAIN, *COLUMNAR):
                files.append(Path(parent, name))
            else:
                skips["files of another kind"] += 1
    if not files:
        raise UserError(f"{folder}: a folder without text; supported are {_SUPPORTED}")
    return files


def _refuse(error: OSError) -> None:
    """Raise the error of an unreadable file or folder: to pass over it in silence would lose text."""
    dead = os.path.islink(error.filename) and not os.path.exists(error.filename)
    advice = "remove this link to nothing" if dead else "change its permissions or move it away"
    raise UserError(f"{error.filename}: cannot be read ({error.strerror}); {advice}")


class Line(NamedTuple):
    """A line of a file, or one piece of a long one."""

    number: int
    """Line number, from 1."""
    text: str
    """Decoded text with its line end."""
    continues: bool
    """Whether this piece continues the line of the piece before it."""


class LineReader:
    """Reader of the lines of a file, decoded."""

    def __init__(self, path: Path, errors: str, stream: BinaryIO | None = None, encoding: str = "utf-8") -> None:
        """Read a file; one that begins with UTF-16's byte order mark is read as UTF-16.

        Args:
            path: the file.
            errors: "strict" or "replace" for invalid bytes.
            stream: a stream to read instead of the file; errors name `path`.
            encoding: an encoding in which a byte 0x0A always is the end of a line.
        """
        self._path = path
        self._errors = errors
        self._stream = stream
        self._encoding = encoding
        self._raw: BinaryIO | None = None

    def position(self) -> int:
        """Number of bytes on disk that have been read."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else 0

    def whole(self) -> Iterator[Line]:
        """The whole lines, for formats in which a record cannot be cut.

        Raises:
            UserError: the file is unreadable or damaged, has invalid UTF-8, or a line longer than `LONGEST_RECORD`.
        """
        for number, data in self.raw_lines(LONGEST_RECORD + 1):
            if len(data) > LONGEST_RECORD:
                raise UserError(
                    f"{self._path}:{number}: the line is longer than {LONGEST_RECORD >> 20} MB; store one record a line"
                )
            yield Line(number, self._decode(data, number), continues=False)

    def pieces(self) -> Iterator[Line]:
        """The lines; long lines come in pieces of about 64 KB, cut before whitespace if there is any.

        Raises:
            UserError: the file is unreadable or damaged, or has invalid UTF-8.
        """
        rest = b""
        continues = False
        for number, data in self.raw_lines(_PIECE, pieces=True):
            goes_on = len(data) == _PIECE and not data.endswith(b"\n")  # a last line may have no line end
            data = rest + data
            rest = b""
            if goes_on:
                cut = _cut(data)
                data, rest = data[:cut], data[cut:]
                if len(rest) > _PIECE:  # no whitespace and no end of a character: not text
                    data, rest = data + rest, b""
            if data:
                yield Line(number, self._decode(data, number), continues)
            continues = not data.endswith(b"\n")
            last = number
        if rest:
            yield Line(last, self._decode(rest, last), continues)

    def raw_lines(self, limit: int, pieces: bool = False) -> Iterator[tuple[int, bytes]]:
        """Line numbers, and lines in bytes; a line longer than `limit` is cut off, or comes in `pieces` of that size.

        Raises:
            UserError: the file is unreadable or damaged.
        """
        number = 0
        ended = True
        try:
            with open_regular(self._path) if self._stream is None else nullcontext(self._stream) as raw:
                self._raw = raw
                with decompressed(self._path, raw) as stream:
                    data = stream.readline(limit)
                    lines: BinaryIO | io.BufferedReader = stream
                    if mark := wide_mark(data) if self._stream is None else None:
                        self._encoding = "utf-8"  # which it now is
                        lines = utf8_of(mark, data, stream, self._errors)
                        data = lines.readline(limit)
                    elif mistake := unmarked_wide(data, None if self._stream is not None else stream):
                        raise UserError(f"{self._path}:1: {mistake}")
                    while data:
                        if number < _LOOKED_AT and (mistake := wide_mistake(data, first=number == 0)):
                            raise UserError(f"{self._path}:{number + 1}: {mistake}")
                        if number == 0:
                            data = data.removeprefix(codecs.BOM_UTF8)
                        number += ended or not pieces
                        ended = data.endswith(b"\n")
                        yield number, data
                        data = lines.readline(limit)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self._path}:{number + 1}: not valid UTF-16, which its first bytes say it is ({error.reason}); fetch "
                "or convert it again, or give --errors replace, where the command has it"
            ) from None
        except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise UserError(f"{self._path}: the compressed file is damaged ({error}); fetch it again") from None
        except OSError as error:
            raise UserError(f"{self._path}: cannot be read ({error.strerror or error})") from None

    def _decode(self, data: bytes, number: int) -> str:
        try:
            return data.decode(self._encoding, self._errors)
        except UnicodeDecodeError as error:
            if number == 1 and b"\0" in data:
                raise UserError(f"{self._path}:{number}: {NUL_BYTES}") from None
            raise UserError(
                f"{self._path}:{number}: not valid {self._encoding.upper()} (byte 0x{data[error.start]:02x}); convert "
                "the file, or give --errors replace to read each such byte as �, where the command has it (of Latin-1: "
                "iconv -f latin1 -t utf-8)"
            ) from None


def _cut(data: bytes) -> int:
    """The index to cut a piece of a line at: before its last space, else before the last character."""
    cut = max(data.rfind(b" "), data.rfind(b"\t"))
    if cut > 0:
        return cut
    cut = len(data)
    # Up to three bytes back lies the first byte of the last character, which may be incomplete.
    for back in range(1, min(4, cut) + 1):
        if data[cut - back] & 0xC0 != 0x80:
            return cut - back or cut
    return cut
