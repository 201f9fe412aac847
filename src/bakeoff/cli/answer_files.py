"""`--out`: answers in a file that appears when it is complete; the ending of its name says the form."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from bakeoff.cli.parquet_answers import write_parquet
from bakeoff.durable import appearing
from bakeoff.errors import UserError
from bakeoff.extras import missing

TABLES = (".jsonl", ".tsv", ".parquet")
"""Endings of files for answers with named values."""

Out = Annotated[
    Path | None,
    typer.Option(
        help=(
            "File to write the answers to: .jsonl, .tsv or .parquet. It appears when it is complete. Default: print "
            "them."
        )
    ),
]

Record = Mapping[str, Any]
"""One answer: values by their names, of the types that JSON has."""


def require_out(out: Path | None, endings: Sequence[str] = TABLES) -> None:
    """Refuse a file that answers cannot be written to, before the work begins.

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


def save_answers(out: Path, parts: Iterable[Iterable[Record]]) -> int:
    """Write answers part by part, so that memory does not grow with their number; returns the number of answers.

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


def _table(file: BinaryIO, parts: Iterator[list[Record]]) -> int:
    """Write a line of names and a line for each answer; values other than texts are JSON, None is nothing."""
    count = 0
    for part in parts:
        if part and not count:
            file.write(("\t".join(part[0]) + "\n").encode())
        file.writelines(("\t".join(map(_cell, each.values())) + "\n").encode() for each in part)
        count += len(part)
    return count


def _cell(value: Any) -> str:
    from bakeoff.cli.answers import on_one_line

    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return on_one_line(text, tabs=True)


_FORMS: dict[str, Callable[[BinaryIO, Iterator[list[Record]]], int]] = {
    ".jsonl": _json_lines,
    ".tsv": _table,
    ".parquet": write_parquet,
}
