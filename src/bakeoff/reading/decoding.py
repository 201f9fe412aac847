"""UTF-8 bytes of text from compressed files and from UTF-16."""

import codecs
import gzip
import io
import unicodedata
from pathlib import Path
from typing import Any, BinaryIO

import zstandard


def decompressed(path: Path, raw: BinaryIO) -> BinaryIO | io.BufferedReader:
    """The bytes of a file, decompressed as its name says."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb"), 1 << 18)
    if suffix == ".zst":
        return io.BufferedReader(_Zstandard(raw), 1 << 18)
    return raw


_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""Encodings of two bytes a character, as spreadsheets write them, by the mark with which a file begins."""

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def utf8_of(mark: bytes, begun: bytes, rest: BinaryIO | io.BufferedReader, errors: str) -> io.BufferedReader:
    """The bytes of a text in UTF-16 as UTF-8.

    Args:
        mark: the byte order mark with which the text begins.
        begun: the bytes that were read already, mark included.
        rest: all later bytes.
        errors: "strict" or "replace" for invalid UTF-16.
    """
    return io.BufferedReader(_Transcoded(begun.removeprefix(mark), rest, _WIDE[mark], errors), 1 << 18)


def wide_mark(data: bytes) -> bytes | None:
    """UTF-16's byte order mark at the beginning of a file, if there is one."""
    return next((mark for mark in _WIDE if data.startswith(mark) and not data.startswith(_UTF32)), None)


_SHORTEST, _SAMPLE = 8, 1 << 12
"""Bytes from which on, and up to which, a text shows its encoding."""
_CONTROLS = bytes(range(32))
_MOST_CONTROLS = 0.35
"""The largest share of bytes below 32 of a text in UTF-8; half of the bytes of most scripts in UTF-16 are such."""


def unmarked_wide(line: bytes, rest: BinaryIO | io.BufferedReader | None) -> str | None:
    """The mistake in a file of UTF-16 without a mark, and advice; None: it is of another encoding.

    A text of UTF-16 holds NUL bytes, at least of its spaces and ends of lines, and is not plausible as UTF-8: it is not
    valid, or holds many control bytes. As UTF-16 it has assigned characters alone, which the wrong order of bytes has
    not.

    Args:
        line: the file's first line.
        rest: what follows, which is looked at and not read; None: it is not to be waited for.
    """
    sample = line + rest.peek(_SAMPLE) if isinstance(rest, io.BufferedReader) and len(line) < _SAMPLE else line
    sample = sample[: min(len(sample), _SAMPLE) // 2 * 2]
    if len(sample) < _SHORTEST or b"\0" not in sample or _is_plausible_utf8(sample):
        return None
    texts = {name: _assigned(sample, name) for name in ("utf-16le", "utf-16be")}
    name, text = max(texts.items(), key=lambda each: sum(letter <= "~" for letter in each[1]))
    return _WITHOUT_MARK.format(name) if text else None


def _is_plausible_utf8(sample: bytes) -> bool:
    try:
        sample[:-3].decode()  # whose last character may be cut
    except UnicodeDecodeError as error:
        if error.end < len(sample) - 6:
            return False
    return len(sample.translate(None, _CONTROLS)) > (1 - _MOST_CONTROLS) * len(sample)


def _assigned(sample: bytes, encoding: str) -> str:
    """The text of a sample; empty: it is not valid, or holds characters that are none of a text's."""
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 2:  # a pair may be cut
            return ""
        text = sample[: error.start].decode(encoding)
    odd = ("Cc", "Cn", "Co")
    return "" if any(unicodedata.category(letter) in odd and letter not in "\t\n\r" for letter in text) else text


def wide_mistake(data: bytes, first: bool) -> str | None:
    """The mistake in a line that is of UTF-16, or of UTF-32, and advice; None: it is of neither.

    Such a line is valid UTF-8 where its letters are those of ASCII, whose every second byte is NUL then; a few NUL
    bytes alone are not taken for that.

    Args:
        data: the line in bytes, or its beginning.
        first: whether it is a file's first line, on which a mark would stand.
    """
    if first and data.startswith(_UTF32):
        return "it is of UTF-32; convert it: iconv -f utf-32 -t utf-8 FILE"
    sample = data[:_SAMPLE]
    wide = len(data) >= _SHORTEST and max(sample[side::2].count(0) * 2 / len(sample) for side in (0, 1)) > 0.5
    return NUL_BYTES if wide else None


_WITHOUT_MARK = "it holds NUL bytes, as UTF-16 without a mark does; convert it: iconv -f {} -t utf-8 FILE"
NUL_BYTES = _WITHOUT_MARK.format("utf-16le (or utf-16be)")
"""The mistake in a text with NUL bytes, and advice."""

_COMPRESSED = 1 << 10
"""Compressed bytes that are decompressed at once: at most 32 MB, where every four bytes stand for a block of 128 KB."""


class _Transcoded(io.RawIOBase):
    """The bytes of a text in another encoding as UTF-8."""

    def __init__(self, begun: bytes, rest: BinaryIO | io.BufferedReader, encoding: str, errors: str) -> None:
        self._begun, self._rest = begun, rest
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._ready = b""
        self._ended = False
        self._error: UnicodeDecodeError | None = None  # after what is ready

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            if self._error is not None:
                raise self._error
            data, self._begun = self._begun or self._rest.read(1 << 16), b""
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                self._error, text = error, error.object[: error.start].decode(error.encoding)
            self._ended = not data and self._error is None
            self._ready = text.encode("utf-8")
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


class _Zstandard(io.RawIOBase):
    """Decompressed bytes of a .zst file; the library's reader takes a truncated file for a complete one."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._frame.unused_data if self._frame.eof else b""
            data = data or self._raw.read(_COMPRESSED)
            if not data:
                if self._started and not self._frame.eof:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._started = True
            self._ready = memoryview(self._frame.decompress(data))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
