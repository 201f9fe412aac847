"""CSV tables for spreadsheets, which would run a text that begins like a formula."""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from bakeoff.display.text import visible

_FORMULA = re.compile(r"(?![+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\Z)[=+\-@＝＋－＠]")
"""Beginnings of a formula; numbers are excluded."""


def write_table(file: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as CSV: texts that begin like a formula get an apostrophe, control characters become escapes."""
    csv.writer(file, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if _FORMULA.match(shown) else shown
