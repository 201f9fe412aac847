"""Rows with named values from any file that has them: .csv, .tsv, .jsonl, .parquet, .arrow, and `hub:`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bakeoff.reading.columns import ColumnReader
from bakeoff.reading.files import COLUMNAR, LineReader, kind_of
from bakeoff.reading.hub import PREFIX, hub_files
from bakeoff.reading.records import PLAIN, RecordStyle, read_records, whole_records


def on_hub(path: Path) -> bool:
    """Whether this is a data set of the Hugging Face Hub, not a file."""
    return str(path).startswith(PREFIX)


def read_rows(
    path: Path,
    names: Sequence[str],
    errors: str,
    encoding: str = "utf-8",
    style: RecordStyle = PLAIN,
    advice: str = "",
) -> Iterator[tuple[int, list[Any]]]:
    """The line of each row, or its number from 1 in files without lines, and its values of some columns.

    Args:
        path: the file, or `hub:OWNER/NAME@SPLIT`.
        names: the columns, in the order in which their values are wanted.
        errors: invalid text is an error ("strict"), or is replaced ("replace").
        encoding: the encoding of a file of lines.
        style: the style of such a file's rows.
        advice: advice for the error about a missing column.

    Raises:
        UserError: a column is missing, or the file has a mistake (with its line).
    """
    if on_hub(path):
        passed = 0
        for file in hub_files(str(path)):
            last = 0
            for row, values in file.records(names, advice):
                last = row
                yield passed + row, values
            passed += last
        return
    if kind_of(path) in COLUMNAR:
        columns = [ColumnReader(path, errors).values(name, advice) for name in names]
        for cells in zip(*columns, strict=True):
            yield cells[0][0], [value for _, value in cells]
        return
    yield from read_records(path, LineReader(path, errors, encoding=encoding), names, advice, style=style)


def whole_rows(
    path: Path, errors: str, encoding: str = "utf-8", style: RecordStyle = PLAIN
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line of each row of a file, or its number from 1 in files without lines, and all of its values by column.

    Raises:
        UserError: two columns have one name, or the file has a mistake (with its line).
    """
    if kind_of(path) in COLUMNAR:
        names = ColumnReader(path, errors).names()
        for row, values in read_rows(path, names, errors):
            yield row, dict(zip(names, values, strict=True))
        return
    yield from whole_records(path, errors, encoding, style)
