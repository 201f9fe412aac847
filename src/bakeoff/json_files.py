"""Reading JSON that may hold anything: every error names the file and the key."""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.regular_files import read_regular

DEEPEST = 64
"""The deepest nesting of brackets, five times that of the deepest recipe."""
LONGEST_NUMBER = 100
"""The most digits of a whole number."""
MOST_OF_LINES = 1 << 30
"""Largest number of bytes of a file with a JSON object on every line."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_KEY_OR_BRACKET = re.compile(rf"({_STRING.pattern})(\s*:)?|[][{{}}]", re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_NAME = 80  # characters of a key in an error


class JsonError(ValueError):
    """A text that is no JSON, or holds what is refused; the message says what and where, without the file.

    Attributes:
        problem: what is wrong, in words.
        line: its line in the text, from 1; None where it is not known.
    """

    def __init__(self, problem: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem if line is None else f"{problem} (line {line}, column {column})")
        self.problem, self.line = problem, line


class RepeatedKey(JsonError):
    """An object that has a key twice, of which a plain reader takes the last one without a word."""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        UserError: the file cannot be read, is not what was written, or holds something else.
    """
    return parse_json(checksums.read(path), str(path))


def require_replaceable(files: Sequence[Path], keys: Iterable[str]) -> None:
    """Refuse to write results where somebody else's files stand.

    Args:
        files: the files that are written, which earlier results may hold; the first one is JSON, and written first.
        keys: the keys by which the first file is known.

    Raises:
        UserError: one of the files is there, and the first one is absent or has not these keys.
    """
    first = files[0]
    taken = [file for file in files if os.path.lexists(file)]
    if not taken or (first in taken and _has(first, keys)):
        return
    raise UserError(f"{taken[0]}: is there already, and not from this command; choose another --out")


def _has(path: Path, keys: Iterable[str]) -> bool:
    try:
        return set(keys) <= parse_json(read_regular(path, checksums.MOST), str(path)).keys()
    except (UserError, OSError):
        return False


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """A file with a JSON object on every line.

    Raises:
        UserError: as in `read_json`, with the number of the line.
    """
    return parse_json_lines(checksums.read(path, MOST_OF_LINES), str(path))


def json_lines(objects: Iterable[Mapping[str, Any]]) -> str:
    """The text of a file with one of these objects on every line, as `read_json_lines` reads it."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def parse_json_lines(content: bytes, where: str) -> list[dict[str, Any]]:
    """The JSON objects in a text that has one on every line."""
    return [parse_json(line, f"{where}:{number}") for number, line in enumerate(content.splitlines(), 1)]


def parse_json(content: bytes, where: str) -> dict[str, Any]:
    """The JSON object in a text.

    Args:
        content: UTF-8 text.
        where: the file that the text comes from, named in the error.

    Raises:
        UserError: the text is no JSON or no object, an object has a key twice, a number is not finite or too long, a
            string has half of a surrogate pair, or brackets are nested too deep.
    """
    values = parse_any_json(content, where)
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected a JSON object with keys and values, found {_kind(values)}")
    return values


def parse_any_json(content: bytes, where: str) -> Any:
    """The value in a JSON text, of any type; `parse_json` takes objects alone."""
    if not content.strip():
        raise UserError(f"{where}: is empty, and should hold JSON")
    try:
        return json_value(content.decode().removeprefix("\ufeff"))  # the mark that some editors put first
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 text (byte {error.start})") from None
    except JsonError as error:
        raise UserError(f"{where}: not valid JSON: {error}") from None


def json_value(text: str, any_number: bool = False) -> Any:
    """The value in a JSON text.

    Args:
        text: the JSON.
        any_number: whether numbers that are not finite, or very long, and halves of surrogate pairs are let through: in
            a row of a user's data they may stand in a field that nobody reads.

    Raises:
        JsonError: the text is no JSON, an object has a key twice, brackets are nested too deep, or a number or half of
            a surrogate pair is refused.
    """
    if _depth(text) > DEEPEST:
        raise JsonError(f"more than {DEEPEST} brackets within each other")
    try:
        value = (_DATA if any_number else _SETTINGS).decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.lineno, error.colno) from None
    except RecursionError:  # brackets that are none to the count, in what is no JSON
        raise JsonError("brackets within brackets without end") from None
    except RepeatedKey:
        raise _repeated(text) from None
    except JsonError:
        raise
    except ValueError as error:  # digits beyond those that Python takes
        raise JsonError(str(error)) from None
    if not any_number:
        _require_characters(text)
    return value


def _require_characters(text: str) -> None:
    """Refuse strings that no file can be written with.

    Raises:
        JsonError: a string has half of a surrogate pair, which JSON can spell; with its line and column.
    """
    if _HALF.search(text) is None:
        return
    for match in _STRING.finditer(text):
        if _HALF.search(match[0]) and any("\ud800" <= each <= "\udfff" for each in json.loads(match[0], strict=False)):
            raise JsonError(
                "half of a surrogate pair (\\ud8...) is not a character", *_line_and_column(text, match.start())
            )


def _line_and_column(text: str, start: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise RepeatedKey("a key comes twice")
    return values


def _repeated(text: str) -> RepeatedKey:
    """The first key of a JSON text that its object has already, with its line and column."""
    open_objects: list[set[str]] = []  # the keys of each object, or list, that is open
    for match in _KEY_OR_BRACKET.finditer(text):
        if match[0] in "{[":
            open_objects.append(set())
        elif match[0] in "}]":
            open_objects.pop()
        elif match[2]:
            name = json.loads(match[1]) if "\\" in match[1] else match[1][1:-1]
            if name in open_objects[-1]:
                return RepeatedKey(
                    f"the key '{name[:_LONGEST_NAME]}' comes twice", *_line_and_column(text, match.start())
                )
            open_objects[-1].add(name)
    return RepeatedKey("a key comes twice")


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise JsonError(f"a number of {len(digits)} digits")
    return int(digits)


def _fraction(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonError(f"the number {digits[:LONGEST_NUMBER]} is too large")
    return value


def _constant(name: str) -> float:
    raise JsonError(f"{name} is no number")


_DATA = json.JSONDecoder(object_pairs_hook=_unique)
_SETTINGS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
)


def _depth(text: str) -> int:
    """The deepest nesting of brackets, without those in strings."""
    if text.count("{") + text.count("[") <= DEEPEST:
        return 0
    signs = np.frombuffer(_STRING.sub("", text).encode("ascii", "replace"), dtype=np.uint8)
    opens = np.isin(signs, np.frombuffer(b"{[", dtype=np.uint8)).astype(np.int64)
    return int(np.cumsum(opens - np.isin(signs, np.frombuffer(b"}]", dtype=np.uint8))).max(initial=0))


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", int: "a number", float: "a number"}
    return "null" if value is None else names[type(value)]
