"""The reader of any file of rows with named values: .csv, .tsv, .jsonl, .parquet, .arrow, and `hub:`."""

from pathlib import Path

from bakeoff.reading.columns import ColumnReader
from bakeoff.reading.files import COLUMNAR, kind_of
from bakeoff.reading.hub import HubFile, hub_files, on_hub
from bakeoff.reading.records import PLAIN, RecordReader, RecordStyle
from bakeoff.reading.table_reader import TableReader


def open_table(
    file: Path | HubFile, errors: str = "strict", encoding: str = "utf-8", style: RecordStyle = PLAIN
) -> TableReader:
    """The reader of a file with rows; nothing of it is read yet.

    Args:
        file: the file, one file of a data set of the Hub, or all of its files, `hub:OWNER/NAME@SPLIT`.
        errors: invalid text is an error ("strict"), or is replaced ("replace").
        encoding: the encoding of a file of lines.
        style: the style of such a file's rows.

    Raises:
        UserError: a library that is necessary for the file is not installed, or there is no such data set.
    """
    if isinstance(file, HubFile):
        return file.read_with(errors)
    if on_hub(file):
        return hub_files(str(file), whole=True)[0].read_with(errors)
    if kind_of(file) in COLUMNAR:
        return ColumnReader(file, errors)
    return RecordReader(file, errors, encoding, style)
