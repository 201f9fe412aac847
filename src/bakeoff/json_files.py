"""Reading JSON that may hold anything: every error names the file and the key."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bakeoff import checksums
from bakeoff.errors import UserError

DEEPEST = 64
"""The deepest nesting of brackets, five times that of the deepest recipe."""
LONGEST_NUMBER = 100
"""The most digits of a whole number."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        UserError: the file cannot be read, is not what was written, or holds something else.
    """
    return parse_json(checksums.read(path), str(path))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """A file with a JSON object on every line.

    Raises:
        UserError: as in `read_json`, with the number of the line.
    """
    return parse_json_lines(checksums.read(path), str(path))


def parse_json_lines(content: bytes, where: str) -> list[dict[str, Any]]:
    """The JSON objects in a text that has one on every line."""
    return [parse_json(line, f"{where}:{number}") for number, line in enumerate(content.splitlines(), 1)]


def parse_json(content: bytes, where: str) -> dict[str, Any]:
    """The JSON object in a text.

    Args:
        content: UTF-8 text.
        where: the file that the text comes from, named in the error.

    Raises:
        UserError: the text is no JSON or no object, an object has a key twice, a number is not finite or too long, or
            brackets are nested too deep.
    """
    values = parse_any_json(content, where)
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected a JSON object with keys and values, found {_kind(values)}")
    return values


def parse_any_json(content: bytes, where: str) -> Any:
    """The value in a JSON text, of any type; `parse_json` takes objects alone."""

    def refuse(problem: str) -> NoReturn:
        raise UserError(f"{where}: not valid JSON: {problem}")

    if not content.strip():
        raise UserError(f"{where}: this file is empty, it should hold JSON")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 text (byte {error.start})") from None
    if _depth(content) > DEEPEST:
        refuse(f"more than {DEEPEST} brackets within each other")
    try:
        return json.loads(text, **_hooks(refuse))
    except json.JSONDecodeError as error:
        refuse(f"{error.msg} (line {error.lineno}, column {error.colno})")
    except RecursionError:  # brackets that are none to the count, in what is no JSON
        refuse("brackets within brackets without end")


def _hooks(refuse: Callable[[str], NoReturn]) -> dict[str, Any]:
    """Arguments for `json.loads` by which it refuses values that it would let through."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            refuse(f"the key '{next(name for name in names if names.count(name) > 1)}' comes twice")
        return found

    def whole(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            refuse(f"a number of {len(digits)} digits")
        return int(digits)

    def fraction(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            refuse(f"the number {digits[:LONGEST_NUMBER]} is too large")
        return value

    return {
        "object_pairs_hook": unique,
        "parse_int": whole,
        "parse_float": fraction,
        "parse_constant": lambda name: refuse(f"{name} is no number"),
    }


def _depth(content: bytes) -> int:
    """The deepest nesting of brackets, without those in strings."""
    if content.count(b"{") + content.count(b"[") <= DEEPEST:
        return 0
    signs = np.frombuffer(_STRING.sub(b"", content), dtype=np.uint8)
    opens = np.isin(signs, np.frombuffer(b"{[", dtype=np.uint8)).astype(np.int64)
    return int(np.cumsum(opens - np.isin(signs, np.frombuffer(b"}]", dtype=np.uint8))).max(initial=0))


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", int: "a number", float: "a number"}
    return "null" if value is None else names[type(value)]
