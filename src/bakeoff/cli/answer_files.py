"""`--out`: answers in a file, in the form that its ending says, which appears when it is complete."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from bakeoff.cli.parquet_answers import write_parquet
from bakeoff.durable import appearing
from bakeoff.errors import UserError

TABLES = (".jsonl", ".tsv", ".parquet")
"""Forms of answers that have names."""

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
"""An answer: names and values as JSON has them."""


def require_out(out: Path | None, endings: Sequence[str] = TABLES) -> None:
    """Refuse what answers cannot be written to, before the work.

    Raises:
        UserError: another ending, a file that is there already, a folder that is not, or `pyarrow` is not installed.
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
            raise UserError(
                f'{out}: .parquet is written with pyarrow, which is not here; run pip install "bakeoff[hub]"'
            ) from None


def save_answers(out: Path, parts: Iterable[Iterable[Record]]) -> int:
    """Write answers, some of them at once, so that memory does not grow with their number; how many there were.

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
    """A line of names, then one an answer; what is neither text nor number is JSON."""
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
