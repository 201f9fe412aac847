import gzip

import pytest
import zstandard

from bakeoff.errors import UserError
from bakeoff.tasks.reading.tables import read_table


def test_tsv_has_no_quoting(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('label\ttext\n1\t"Yes," he said\n0\t"open\n\n1\ta "b\n')
    table = read_table(path, "text", None, "label")
    assert table.texts == ['"Yes," he said', '"open', 'a "b']
    assert table.labels == ["1", "0", "1"]
    assert table.lines == [2, 3, 5]


def test_csv_has_quoting_and_lines_in_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ufefftext,pair,label\r\n"a, ""b""",c,x\r\n"two\nlines",d,y\r\n', encoding="utf-8")
    table = read_table(path, "text", "pair", "label")
    assert table.texts == ['a, "b"', "two\nlines"]
    assert table.pairs == ["c", "d"]
    assert table.lines == [2, 4]


def test_json_lines_are_read_whatever_they_are_called(tmp_path):
    (tmp_path / "a.json").write_text('{"t": "One.", "l": 1}\n{"t": "Two.", "l": 2}\n')
    assert read_table(tmp_path / "a.json", "t", label_column="l").labels == ["1", "2"]
    (tmp_path / "b.json").write_text('[{"t": "One.", "l": 1}]')
    with pytest.raises(UserError, match=r"b\.json: labelled data is read from .*; write one object a line \(jq"):
        read_table(tmp_path / "b.json", "t", label_column="l")


def test_jsonl_labels_may_be_numbers_and_truth_values(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": 1}\n\n{"label": 1.0, "text": "b"}\n{"text": null, "label": "x "}\n')
    table = read_table(path, "text", None, "label")
    assert table.labels == ["1", "1", "x"]
    assert table.texts == ["a", "b", ""]


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_compressed(tmp_path, suffix, compress):
    path = tmp_path / f"a.tsv{suffix}"
    path.write_bytes(compress(b"text\tlabel\nhello\t1\n"))
    assert read_table(path, "text", None, "label").texts == ["hello"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", "a.tsv: the file holds no rows"),
        ("a.tsv", b"text\tlabel\n", "a.tsv: the file holds no rows"),
        ("a.jsonl", b"\n", "a.jsonl: the file holds no rows"),
        ("a.tsv", b"sentence\tlabels\nx\t1\n", "a.tsv:1: no column 'text'.*sentence"),
        (
            "a.tsv",
            b"text\tlabels\nx\t1\n",
            r"no column 'label'; did you mean 'labels'\? \(columns here: text, labels\)",
        ),
        ("a.jsonl", b'{"text": "x", "lable": 1}\n', r"a.jsonl:1: no field 'label'; did you mean 'lable'\?"),
        ("a.tsv", b"text\tlabel\nx\t1\ny\t \n", "a.tsv:3: the label is empty"),
        ("a.jsonl", b'{"text": "x", "label": null}\n', "a.jsonl:1: the label is empty"),
        ("a.tsv", b"text\tlabel\nx\ty\t1\n", "a.tsv:2: the row has 3 columns, the first line 2"),
        ("a.csv", b"text,label\nx\n", "a.csv:2: the row has 1 column, the first line 2"),
        ("a.csv", b'text,label\n"x,1\n', "a.csv:2: broken CSV"),
        ("a.jsonl", b'{"text": "x"\n', "a.jsonl:1: broken JSON"),
        (
            "a.jsonl",
            b'{"text": "x", "label": 1}\n{"text": "y", "label": 1, "label": 2}\n',
            "l:2: the key 'label' comes twice; mend",
        ),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: not a JSON object"),
        ("a.jsonl", b'{"text": 5, "label": 1}\n', "a.jsonl:1: 'text' holds int"),
        ("a.jsonl", b'{"text": "x", "label": [1]}\n', "a.jsonl:1: column 'label' holds list"),
        ("a.tsv", b"text\tlabel\nx\t1\n\xff\t1\n", "a.tsv:3: not valid UTF-8"),
        ("a.txt", b"text\tlabel\nx\t1\n", "a.txt: labelled data is read from"),
        ("a.tsv.gz", b"text\tlabel\nx\t1\n", "damaged"),
    ],
)
def test_mistakes_are_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        read_table(path, "text", None, "label")
    assert "\n" not in str(caught.value)


def test_missing_file_and_equal_columns(tmp_path):
    with pytest.raises(UserError, match=r"none.csv: no such file"):
        read_table(tmp_path / "none.csv", "text")
    (tmp_path / "a.csv").write_text("text\nx\n")
    with pytest.raises(UserError, match="different columns"):
        read_table(tmp_path / "a.csv", "text", "text")


def test_invalid_utf8_can_be_replaced(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"text\tlabel\n\xff!\t1\n")
    assert read_table(path, "text", None, "label", errors="replace").texts == ["\ufffd!"]


def test_columns_that_are_not_asked_for_are_not_there(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\nhello\t1\n")
    table = read_table(path, "text", None, None)
    assert (table.texts, table.pairs, table.labels) == (["hello"], None, None)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["1", "true"], ":2: the label is true or false, and that of line 1 a number; write labels in one way"),
        (["false", '"a"', "0"], ":3: the label is a number, and that of line 1 true or false"),
        (["1", "NaN"], ":2: the label is nan, which is neither a class nor a number"),
        (["-Infinity"], ":1: the label is -inf, which is neither a class nor a number"),
    ],
)
def test_labels_that_are_no_classes(labels, message, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "a", "label": {label}}}\n' for label in labels))
    with pytest.raises(UserError, match=message):
        read_table(path, "text", None, "label")


def test_truth_values_are_labels(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": true}\n{"text": "b", "label": false}\n')
    assert read_table(path, "text", None, "label").labels == ["true", "false"]


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ttext\na\tb\tc\n")
    assert read_table(path, "label", None, None).texts == ["b"]
    with pytest.raises(UserError, match=r"a\.tsv:1: 2 columns are called 'text'; rename all but one"):
        read_table(path, "text", None, "label")
