"""Whether a command's output has the shape that a page shows; numbers, texts and times may differ.

The shape is the first column of every line that is not indented, with the numbers taken out; of JSON its keys; of
columns parted by tabs, which are what models answer, where numbers stand. A page may leave lines out (`...`), and shows
no progress.
"""

import json
import re
from contextlib import suppress
from typing import Any

_NUMBER = re.compile(r"[+−-]?\d[\d,.]*(e[+-]?\d+)?")


def columns(text: str) -> list[str]:
    """What stands first in each line, without numbers."""
    lines = [line for line in text.splitlines() if line.strip() and line[0] not in " \t" and line.strip() != "..."]
    return [_shape(line.strip()) for line in lines]


def _shape(line: str) -> str:
    head, brace, rest = line.partition("{")
    if brace and head in ("", "data: "):
        with suppress(ValueError):  # JSON of several lines
            return head + _keys(json.loads(brace + rest))
    if "\t" in line:
        return "\t".join(re.sub(r".*?( ?0)?$", r"\1", _NUMBER.sub("0", cell)) for cell in line.split("\t"))
    return _NUMBER.sub("0", re.split(r"\s{2,}", line)[0])


def _keys(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_keys(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return f"[{_keys(value[0])}]" if value else "[]"
    return type(value).__name__


def missing(shown: str, printed: str) -> list[str]:
    """What the page shows and the command did not print, in this order."""
    rest = iter(columns(printed))
    return [column for column in columns(shown) if column not in rest]
