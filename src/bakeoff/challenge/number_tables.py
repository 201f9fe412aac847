"""Official tables of numbers beside words: .csv files whose cells may lack a number."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.json_files import MOST_OF_LINES

_LONGEST_CELL = 2**17
"""The most characters of a cell: one that is longer has a quotation mark that is never closed."""
_MISSING = {"", "#n/a", "n/a", "na", "nan", "null", "none", "<na>", "-nan"}


def read_rows(
    path: Path, texts: Sequence[str], numbers: Sequence[str], more: Sequence[str] = ()
) -> list[dict[str, str]]:
    """The rows of a file.

    Args:
        path: the file.
        texts: columns that it must have.
        numbers: further ones, which hold numbers or nothing.
        more: columns like these that it may lack.

    Raises:
        UserError: the file cannot be read, lacks a column, or a column of numbers holds something else.
    """
    try:
        text = checksums.read(path, MOST_OF_LINES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not in UTF-8") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
    of_others = csv.field_size_limit(_LONGEST_CELL)  # one of the process, which readers of tables raise
    try:
        names = reader.fieldnames or ()
        numbered = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise UserError(f"{path}: a row after line {reader.line_num} has a cell without an end: {error}") from None
    finally:
        csv.field_size_limit(of_others)
    if lacking := [name for name in (*texts, *numbers) if name not in names]:
        raise UserError(f"{path}: has no column {lacking[0]}")
    known = [*numbers, *(name for name in more if name in names)]
    for line, row in numbered:
        for name in known:
            try:
                number_of(row[name])
            except ValueError:
                raise UserError(f"{path}:{line}: column {name}: {row[name]!r} is not a number") from None
    return [row for _, row in numbered]


def is_missing(cell: str) -> bool:
    """Whether a cell holds nothing, or one of the words for nothing."""
    return cell.strip().lower() in _MISSING


def number_of(cell: str) -> float:
    """The number of a cell; nan where it is missing.

    Raises:
        ValueError: it is something else, or infinite.
    """
    number = math.nan if is_missing(cell) else float(cell)
    if math.isinf(number):
        raise ValueError(cell)
    return number
