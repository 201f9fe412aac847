"""`--out`: records in a file that appears when it is complete; the ending of its name says the form."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from bakeoff.cli.shared.parquet_file import write_parquet
from bakeoff.cli.shared.texts import on_one_line
from bakeoff.durable import appearing
from bakeoff.errors import UserError
from bakeoff.extras import missing
from bakeoff.reading.table_reader import whole_characters

TABLES = (".jsonl", ".csv", ".tsv", ".parquet")
"""Endings of files for records with named values."""


Out = Annotated[
    Path | None,
    typer.Option(
        help=(
            "File to write the answers to: .jsonl, .csv, .tsv or .parquet. It appears when it is complete. Default: "
            "print them."
        )
    ),
]


Record = Mapping[str, Any]
"""A record: values by their names, of the types that JSON has."""


def plain(value: Any, where: str, errors: str) -> Any:
    """The value as JSON has it: text if its type is another, such as a date, and null in place of NaN and infinity.

    Args:
        value: a value of a row.
        where: the file, its line and the value's name.
        errors: "strict" refuses half of a surrogate pair in a text, "replace" reads it as U+FFFD.

    Raises:
        UserError: there is such a half.
    """
    if isinstance(value, Mapping):
        return {whole_characters(str(name), where, errors): plain(each, where, errors) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, where, errors) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, int | float) else whole_characters(str(value), where, errors)


def require_out(out: Path | None, endings: Sequence[str] = TABLES) -> None:
    """Refuse a file that records cannot be written to, before the work begins.

    Raises:
        UserError: the ending is another, the file exists, its folder does not, or `pyarrow` is not installed.
    """
    if out is None:
        return
    if out.suffix not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"{out}: answers are written to a {known}; give --out such a name, or leave --out out")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out}: is there already; choose another --out")
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")
    if out.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise missing(f"{out}: .parquet is written with pyarrow", "hub") from None


def save_records(out: Path, parts: Iterable[Iterable[Record]]) -> int:
    """Write records part by part, so that memory does not grow with their number; returns the number of records.

    Raises:
        UserError: the file cannot be made.
    """
    with appearing(out) as file:
        return _FORMS[out.suffix](file, (list(part) for part in parts))


def _json_lines(file: BinaryIO, parts: Iterator[list[Record]]) -> int:
    count = 0
    for part in parts:
        file.writelines(f"{json.dumps(dict(each), ensure_ascii=False)}\n".encode() for each in part)
        count += len(part)
    return count


def _table(line: Callable[[Iterable[str]], str]) -> Callable[[BinaryIO, Iterator[list[Record]]], int]:
    """A function that writes a line of names and a line for each record, made of its cells by `line`."""

    def write(file: BinaryIO, parts: Iterator[list[Record]]) -> int:
        count, names = 0, list[str]()
        for part in parts:
            if part and not count:
                names = list(part[0])
                file.write(line(names).encode())
            for each in part:
                count += 1
                if more := next((name for name in each if name not in names), None):
                    raise UserError(
                        f"answer {count:,} has the value '{more}', which the first has not; write them to a .jsonl"
                    )
                file.write(line(_cell(each.get(name)) for name in names).encode())
        return count

    return write


def _cell(value: Any) -> str:
    """A value in a table: None is nothing, and what is no text is JSON."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _between_tabs(cells: Iterable[str]) -> str:
    return "\t".join(on_one_line(cell, tabs=True) for cell in cells) + "\n"


def _between_commas(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)  # by which it also quotes a carriage return in a cell
    return line.getvalue().removesuffix("\r\n") + "\n"


_FORMS: dict[str, Callable[[BinaryIO, Iterator[list[Record]]], int]] = {
    ".jsonl": _json_lines,
    ".csv": _table(_between_commas),
    ".tsv": _table(_between_tabs),
    ".parquet": write_parquet,
}
