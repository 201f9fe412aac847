"""Checks of a tokenizer.json from elsewhere, before the tokenizers library takes its numbers for granted."""

import base64
import binascii
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.json_files import JsonError, json_value

MOST_BYTES = 1 << 28
"""Largest size of a file in bytes; the largest files in use have a seventh of it."""
MOST_IDS = 1 << 22
"""Largest size of a vocabulary; the largest vocabularies in use have a quarter of it."""
MOST_UNUSED = 10_000
"""Largest number by which ids without a token may exceed ids with one."""
LONGEST_INSERTION = 64
"""Largest number of characters that all steps together may make of one character; and of a mark of a word's parts."""
PROBE = (
    "The quick  brown fox, 1234567890!\tna\u00efve Ⅷ ﬁ e\u0301 Привет שלום नमस्ते 中文字 かな 한국어 "
    "🎉\U0001f469\u200d\U0001f680 [MASK] <s> \x00\x01\u00ad\u2028\ufeff\U0010ffff\n\n" + "ab" * 200
)
"""A text of many kinds of characters; it is encoded when a tokenizer's file is read, so that failures show then."""


def read(file: Path) -> str:
    """The text of a tokenizer.json.

    Raises:
        UserError: the path does not exist or is no file, or the file is too large or not UTF-8.
    """
    try:
        if file.exists() and not file.is_file():
            raise UserError(f"{file}: not a file; give the path of a tokenizer.json")
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{file}: {file.stat().st_size:,} bytes are too many for a tokenizer.json")
        return checksums.read(file, MOST_BYTES).decode()
    except FileNotFoundError:
        raise UserError(f"{file}: no such tokenizer; give the path of a tokenizer.json") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read as a tokenizer ({error})") from None


def bounded(text: str, where: str, rows: int | None = None, spare: int = 0) -> None:
    """Refuse a tokenizer that would make the library abort the process or take memory without end.

    Args:
        text: the text of a tokenizer.json; the library itself refuses text that is no JSON or lacks a part.
        where: the file, for the error.
        rows: rows of the table of the model that the tokenizer is for; None: unknown.
        spare: how many ids may lie beyond them, those of special tokens that were added.

    Raises:
        UserError: there are too many ids or too large ones, or more than the table has rows; a step makes a long text
            of a short one, or a table of characters is damaged.
    """
    try:
        values = json_value(text, any_number=True)
    except JsonError as error:
        raise UserError(f"{where}: not a tokenizer.json of the tokenizers library ({error})") from None
    if not isinstance(values, dict):
        raise UserError(f"{where}: not a tokenizer.json of the tokenizers library (not an object)")
    model: Any = values["model"] if isinstance(values.get("model"), dict) else {}
    _bound_ids(model.get("vocab"), values.get("added_tokens"), where, rows, spare)
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(str(model.get(key))) > LONGEST_INSERTION:
            raise UserError(f"{where}: its {key} has more than {LONGEST_INSERTION} characters")
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        longest = 1
        for step in _steps(values.get(name)):
            longest *= max(1, len(str(step.get("content", ""))), len(str(step.get("prepend", ""))))
            if longest > LONGEST_INSERTION:
                raise UserError(f"{where}: its {name} makes more than {LONGEST_INSERTION} characters of one")
            if "precompiled_charsmap" in step:
                _require_whole(step["precompiled_charsmap"], where)


def _bound_ids(vocabulary: Any, added: Any, where: str, rows: int | None, spare: int) -> None:
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    ids += list(range(len(vocabulary))) if isinstance(vocabulary, list) else []
    ids += [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    largest = max((i for i in ids if isinstance(i, int)), default=0)
    if max(largest + 1, len(ids)) > MOST_IDS:
        raise UserError(f"{where}: has {max(largest + 1, len(ids)):,} ids; at most {MOST_IDS:,} can be used")
    if rows is not None and largest >= rows + spare:
        raise UserError(
            f"{where}: {largest + 1:,} tokens, but the model's table has {rows:,}: this is another model's tokenizer"
        )
    if largest > 2 * len(ids) + MOST_UNUSED:
        raise UserError(f"{where}: its largest id is {largest:,}, but it has no more than {len(ids):,} tokens")


def _steps(node: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a JSON value at any depth, which include the steps of nested sequences."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            yield node
            waiting += [value for value in node.values() if isinstance(value, dict | list)]


def _require_whole(table: Any, where: str) -> None:
    """Check SentencePiece's table of characters: the size of its index in bytes, the index, and texts.

    Raises:
        UserError: the table is damaged.
    """
    try:
        data = base64.b64decode(table, validate=True)
        (size,) = struct.unpack_from("<I", data)
        whole = size % 4 == 0 and 0 < size <= len(data) - 4
    except (TypeError, ValueError, binascii.Error, struct.error):
        whole = False
    if not whole:
        raise UserError(f"{where}: its table of characters (precompiled_charsmap) is damaged")


@contextmanager
def guarded(where: str, what: str) -> Iterator[None]:
    """Turn any exception of the library into a UserError.

    A panic in the library's Rust code is a `PanicException`, which is no `Exception`, and which no module exports.

    Args:
        where: the file, for the error.
        what: the mistake in the file, for the error.

    Raises:
        UserError: the library has raised an exception.
    """
    try:
        yield
    except (UserError, AssertionError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"{where}: {what} ({' '.join(str(error).split())[:200]})") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the trace that a panic prints from standard error.

    Other output to standard error meanwhile appears afterwards.
    """
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        except BaseException:
            file.truncate(0)
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            if printed := file.read():
                os.write(2, printed)
