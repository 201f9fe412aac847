"""One reader for rows with named values, whatever the file: the same table in each form is the same table."""

import csv
import gzip
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.reading.tables import open_table
from bakeoff.scoring.minimal_pairs import kinds_of

pyarrow = pytest.importorskip("pyarrow")
ipc, parquet = pytest.importorskip("pyarrow.ipc"), pytest.importorskip("pyarrow.parquet")

NAMES = ["text", "é x", "label"]
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\t\n"), max_size=6)


def separated(rows, **style):
    written = io.StringIO(newline="")
    csv.writer(written, **style).writerows([NAMES, *rows])
    return written.getvalue().encode()


def arrow(path, rows, new):
    table = pyarrow.table({name: pyarrow.array([row[i] for row in rows], "string") for i, name in enumerate(NAMES)})
    with new(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)


def lines(rows):
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows).encode()


FORMS = {
    "table.csv": lambda path, rows: path.write_bytes(separated(rows)),
    "marked.csv": lambda path, rows: path.write_bytes(b"\xef\xbb\xbf" + separated(rows, lineterminator="\n")),
    "table.csv.gz": lambda path, rows: path.write_bytes(gzip.compress(separated(rows))),
    "table.tsv": lambda path, rows: path.write_text(
        "".join("\t".join(row) + "\r\n" for row in [NAMES, *rows]), "utf-8"
    ),
    "table.jsonl": lambda path, rows: path.write_bytes(lines(rows)),
    "table.parquet": lambda path, rows: parquet.write_table(
        pyarrow.table({name: pyarrow.array([row[i] for row in rows], "string") for i, name in enumerate(NAMES)}), path
    ),
    "streamed.arrow": lambda path, rows: arrow(path, rows, ipc.new_stream),
    "file.arrow": lambda path, rows: arrow(path, rows, ipc.new_file),
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5), st.integers(0, 5))
@example([('a "quote", and more', "\u2028", "")] * 3, 1)
def test_a_table_is_the_same_in_every_form(rows, skip):
    with TemporaryDirectory() as folder:
        for name, write in FORMS.items():
            path = Path(folder, name)
            write(path, rows)
            table = open_table(path)
            assert table.names() == NAMES
            assert [values for _, values in table.rows(["label", "text"], skip=skip)] == [
                [row[2], row[0]] for row in rows[skip:]
            ]
            assert [values for _, values in table.whole()] == [dict(zip(NAMES, row, strict=True)) for row in rows]
            assert list(table.texts(["e\u0301 x"])) == [(row[1],) for row in rows]
            first = 2 if ".csv" in name or ".tsv" in name else 1
            assert [number for number, _ in table.rows(["text"])] == list(range(first, first + len(rows)))
            assert 0 <= table.position() <= path.stat().st_size
            with pytest.raises(UserError, match=r"no (column|field) 'more'.*; say which$"):
                list(table.rows(["text", "more"], "; say which"))


@pytest.mark.parametrize(("ending", "place"), [(".parquet", ", row 2"), (".jsonl", ":3")])
def test_a_value_that_is_no_text_is_told_with_its_place(tmp_path, ending, place):
    path = tmp_path / f"table{ending}"
    if ending == ".parquet":
        parquet.write_table(pyarrow.table({"text": ["a", "b"], "number": [None, 4]}), path)
    else:
        path.write_text('{"text": "a", "number": null}\n\n{"text": "b", "number": 4}\n')
    with pytest.raises(UserError) as error:
        list(open_table(path).texts(["text", "number"]))
    assert str(error.value) == f"{path}{place}: 'number' holds int instead of text"


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".tsv"])
def test_groups_of_minimal_pairs_are_known_by_the_columns_of_any_file(tmp_path, ending):
    path = tmp_path / f"pairs{ending}"
    values = {"sentence_good": "A cat sleeps.", "sentence_bad": "A cat sleep.", "field": "syntax"}
    if ending == ".parquet":
        parquet.write_table(pyarrow.table({name: [value] for name, value in values.items()}), path)
    elif ending == ".jsonl":
        path.write_text(json.dumps(values) + "\n")
    else:
        path.write_text("\t".join(values) + "\n" + "\t".join(values.values()) + "\n")
    assert kinds_of(path) == ["field"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_field_within_a_field_is_named_with_a_dot(tmp_path, ending):
    """The same table is read by the same names, whatever its form; a field whose own name has a dot comes first."""
    texts = [("hello", "Hallo", "x"), ("", "Na", "")]
    rows = [{"pair": {"de": {"text": german}, "en": english}, "a.b": other} for english, german, other in texts]
    path = tmp_path / f"table.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert list(open_table(path).texts(["pair.en", "pair.de.text", "a.b"])) == texts
    with pytest.raises(UserError, match=r"(:|, row )1: nothing stands under 'fr' of 'pair' \(here: de, en\)$"):
        next(open_table(path).texts(["pair.fr"]))


@pytest.mark.parametrize(("name", "blank"), [("a.csv", '""'), ("a.tsv", "")])
def test_a_blank_cell_of_a_single_column_is_a_row_and_other_blank_lines_are_none(name, blank, tmp_path):
    """In a .csv it is quoted, as csv and pandas write it: blank lines are what files of Windows have between rows."""
    path, sign = tmp_path / name, "," if name.endswith("csv") else "\t"
    path.write_text(f"text\nA dog.\n{blank}\nA cat.\n")
    assert [cells[0] for _, cells in open_table(path).rows(["text"])] == ["A dog.", "", "A cat."]
    for form in (f"text{sign}label\nA dog.{sign}x\n\nA cat.{sign}y\n", "text\r\r\nA dog.\r\r\nA cat.\r\r\n\n"):
        if name == "a.csv" or sign in form:
            path.write_bytes(form.encode())
            assert [cells[0] for _, cells in open_table(path).rows(["text"])] == ["A dog.", "A cat."]
