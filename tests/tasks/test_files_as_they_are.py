"""Labelled files as people have them: encodings, marks, line ends, headers, quotes, other forms, rows left out."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.reading.files import LineReader
from bakeoff.reading.records import RecordReader, RecordStyle
from bakeoff.tasks.data import load_task, read_examples
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig

ROWS = "text\tlabel\ncafé\ta\n東京 x\tb\n😀\ta\n"
WORDS = "café B-X\n東 I-X\n\n😀 O\n"


def config(path, **changes):
    return ClassificationConfig(**({"train": path, "text_column": "text", "label_column": "label"} | changes))


def pairs(path, **changes):
    return [(each.texts[0], each.label) for each in read_examples(config(path, **changes), path)[0]]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_and_line_ends_leave_no_trace(encoding, end, tmp_path):
    mark = "\ufeff" if encoding.endswith(("le", "be")) else ""
    table = written(tmp_path / "a.tsv", (mark + ROWS.replace("\n", end)).encode(encoding))
    assert pairs(table) == [("café", "a"), ("東京 x", "b"), ("😀", "a")]
    quoted = written(tmp_path / "a.csv", (mark + ROWS.replace("\t", ",").replace("\n", end)).encode(encoding))
    assert pairs(quoted) == pairs(table)
    objects = "".join(json.dumps({"text": text, "label": label}) + end for text, label in pairs(table))
    assert pairs(written(tmp_path / "a.jsonl", (mark + objects).encode(encoding))) == pairs(table)
    words = written(tmp_path / "a.conll", (mark + WORDS.replace("\n", end)).encode(encoding))
    found, _ = read_examples(TaggingConfig(train=words), words)
    assert [(each.texts, each.tags, each.line) for each in found] == [
        (("café", "東"), ("B-X", "I-X"), 3),
        (("😀",), ("O",), 4),
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff"), max_size=40)))
def test_utf16_is_read_line_by_line(tmp_path_factory, lines):
    assume(not "".join(lines[:1]).startswith("\0"))  # which would make the mark of UTF-32 of that of UTF-16
    path = tmp_path_factory.mktemp("wide") / "a.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-16"))
    assert [line.text for line in LineReader(path, "strict").whole()] == [f"{line}\n" for line in lines]


def test_other_encodings_are_settings(tmp_path):
    latin = written(tmp_path / "a.tsv", "text\tlabel\ncafé\ta\nx\tb\n".encode("latin-1"))
    assert pairs(latin, encoding="latin-1")[0] == ("café", "a")
    with pytest.raises(UserError, match=r"a\.tsv:2: not valid UTF-8 \(byte 0xe9\).*iconv"):
        pairs(latin)
    words = written(tmp_path / "a.conll", "北 B-LOC\n京 I-LOC\n\n".encode("gb18030"))
    found, _ = read_examples(TaggingConfig(train=words, encoding="gb18030"), words)
    assert found[0].texts == ("北", "京")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", ROWS.replace("\n", "\r"), r"a\.tsv:1: lines end with a carriage return alone; .*tr"),
        ("a.csv", ROWS.replace("\t", ",").replace("\n", "\r"), r"a\.csv:1: broken CSV \(a carriage return .*tr"),
        ("a.jsonl", '{"text": "a", "label": 1}\r{"text": "b", "label": 2}', r"a\.jsonl:1: lines end with a carriage"),
        ("a.tsv", ROWS.encode("utf-16-le"), r"a\.tsv:1: it holds NUL bytes.*iconv -f utf-16le"),
        ("a.csv", ROWS.replace("\t", ",").encode("utf-16-le"), r"a\.csv:1: it holds NUL bytes"),
        (
            "a.tsv",
            b"\xff\xfe" + "text\tlabel\n".encode("utf-16-le") + b"\x00\xd8\n\x00",
            r"a\.tsv:2: not valid UTF-16.*replace",
        ),
        ("a.csv", 'text,label\na,1\n"b,2\nc,3\nd,4\n', r"a\.csv:3: broken CSV \(a quotation mark opens here"),
        ("a.csv", 'text,label\n"a ""x"" b\nc ""y"" d,1\nc,3\n', r"a\.csv:2: broken CSV \(a quotation mark opens here"),
        ("a.csv", 'text,label\n"a,1\nb,2\n"c,3\n', r"a\.csv:4: broken CSV .*left open that opens on line 2\?"),
        ("a.csv", 'text,label\n"a,1\n"b, ",2\nc,3\n', r"a\.csv:3: broken CSV .*left open that opens on line 2\?"),
        ("a.csv", ROWS, r"a\.csv:1: no column 'text'.*between tabs, give --option separator=tab"),
        ("a.csv", ROWS.replace("\t", ";"), r"give --option separator=semicolon"),
        ("a.tsv", ROWS.partition("\n")[2], r"if the first row is data, give --option header=false"),
        ("a.xlsx", b"PK\3\4", r"a\.xlsx: labelled data is read from .*; save the sheet as \.csv"),
        ("a.dat", ROWS, r"a\.dat: labelled data .* give --option separator=tab"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_place_and_remedy(name, content, message, tmp_path):
    path = written(tmp_path / name, content)
    with pytest.raises(UserError, match=message) as caught:
        pairs(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [WORDS.replace("\n", "\r"), WORDS.encode("utf-16-le")])
def test_foreign_files_of_words_are_refused(content, tmp_path):
    path = written(tmp_path / "a.conll", content)
    with pytest.raises(UserError, match=r"a\.conll:1: (lines end with a carriage|it holds NUL)"):
        read_examples(TaggingConfig(train=path), path)


def test_a_word_may_be_a_space_of_another_kind(tmp_path):
    path = written(tmp_path / "a.conll", "北 B-X\n\u3000 O\n\xa0  O\n")
    assert read_examples(TaggingConfig(train=path), path)[0][0].texts == ("北", "\u3000", "\xa0")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.text('ab",\n ', max_size=5), min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from(["comma", "semicolon"]),
)
def test_quoted_cells_are_those_of_the_library(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("quoted") / "a.csv"
    stream = io.StringIO()
    sign = {"comma": ",", "semicolon": ";"}[separator]
    csv.writer(stream, delimiter=sign, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    path.write_text(stream.getvalue())
    style = RecordStyle(header=False, separator=separator)
    assert [cells for _, cells in RecordReader(path, "strict", style=style).rows(["1", "2"])] == rows


def test_columns_without_a_header_have_numbers(tmp_path):
    path = written(tmp_path / "a.tsv", "x\t1\tone\ny\t0\ttwo\n")
    assert pairs(path, header=False, text_column=3, label_column="2") == [("one", "1"), ("two", "0")]
    with pytest.raises(UserError, match=r"a\.tsv:1: no column '4' \(columns here: 1, 2, 3\); columns have numbers"):
        pairs(path, header=False, text_column=4, label_column="2")


def test_longer_rows_are_read_where_that_is_said(tmp_path):
    path = written(tmp_path / "a.dat", '1\t"a\n0\tb\tmore\n')
    form = {"header": False, "separator": "tab", "text_column": 2, "label_column": 1}
    assert pairs(path, extra_columns=True, **form) == [('"a', "1"), ("b", "0")]
    with pytest.raises(UserError, match=r"a\.dat:2: the row has 3 columns"):
        pairs(path, **form)


def test_rows_that_are_left_out_are_counted_and_said(tmp_path):
    rows = "".join(f"text {i}\t{'ab'[i % 2]}\n" for i in range(40))
    path = written(tmp_path / "a.tsv", f"text\tlabel\n{rows}too\tmany\tcells\nfew\nno\t\nneutral\tc\n")
    data = load_task(config(path, broken_rows="skip", label_names={"c": None, "a": "yes"}))
    assert sum(map(len, (data.train, data.dev, data.test))) == 40
    assert data.task.classes == ["b", "yes"]
    assert data.notes[:3] == [
        "2 rows of a.tsv left out: the row has another number of columns than the first",
        "1 row of a.tsv left out: the row has no label",
        "1 row of a.tsv left out: the row has the label 'c'",
    ]
    with pytest.raises(UserError, match=r"a\.tsv:42: the row has 3 columns"):
        load_task(config(path))
    with pytest.raises(UserError, match=r"a\.tsv: no row is left; .*; 2 rows of a"):
        read_examples(config(path, broken_rows="skip", label_names=dict.fromkeys("abc")), path)
    rows = '{"text": "a", "label": 1}\n{"text": \n{"text": "c", "label": 1, "label": 2}\n["c", 3]\n'
    rows += '{"text": "b", "label": 2.5}\n{"text": "d"}\n'
    objects = written(tmp_path / "a.jsonl", rows)
    numbers = RegressionConfig(train=objects, text_column="text", label_column="label", broken_rows="skip")
    found, notes = read_examples(numbers, objects)
    assert ([each.value for each in found], notes) == (
        [1, 2.5],
        [
            "1 row of a.jsonl left out: the row is broken JSON",
            "1 row of a.jsonl left out: the row has a key twice",
            "1 row of a.jsonl left out: the row is no JSON object",
            "1 row of a.jsonl left out: the row has no field 'label'",
        ],
    )
    misspelt = numbers.model_copy(update={"label_column": "lable"})
    with pytest.raises(UserError, match=r"a\.jsonl:1: no field 'lable'"):
        read_examples(misspelt, objects)


def test_a_row_that_says_nothing_of_a_label_is_left_out_as_one_without_a_label(tmp_path):
    path = written(tmp_path / "a.tsv", "text\tx\ty\na\t1\t0\nb\t\t0\nc\t0\t1\n")
    kinds = {"train": path, "text_column": "text", "label_column": ["x", "y"]}
    found, notes = read_examples(MultilabelConfig(**kinds, broken_rows="skip"), path)
    assert ([each.line for each in found], notes) == ([2, 4], ["1 row of a.tsv left out: the row has no label"])
    with pytest.raises(UserError, match=r"a\.tsv:3: '' says neither 1 nor 0 \(column 'x'\); write one of them"):
        read_examples(MultilabelConfig(**kinds), path)


def test_labels_are_named_as_they_are_read(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"text": "a", "label": 1.0}\n{"text": "b", "label": 0}\n')
    assert pairs(path, label_names={1: "one", 0: 7}) == [("a", "one"), ("b", "7")]


def test_columns_of_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"label": [0, 1], "text": ["x", "y"], "more": [["p", "q"], ["r", "s"]]}), path)
    assert pairs(path) == [("x", "0"), ("y", "1")]
    task = ChoiceConfig(train=path, text_column="text", choices="more", label_column="label")
    assert [(each.choices, each.answer) for each in read_examples(task, path)[0]] == [(("p", "q"), 0), (("r", "s"), 1)]
    with pytest.raises(UserError, match="no column 'texts'"):
        pairs(path, text_column="texts")
    parquet.write_table(arrow.table({"label": [0, 1], "text": [b"x", b"y\xff"]}), path)
    assert pairs(path, errors="replace") == [("x", "0"), ("y\ufffd", "1")]
    with pytest.raises(UserError, match=r"a\.parquet, row 2: 'text' is not valid UTF-8 \(byte 0xff\)"):
        pairs(path)


def test_rows_of_a_data_set_of_the_hub(tmp_path):
    pytest.importorskip("datasets")
    for split, count in (("train", 3), ("test", 2)):
        lines = (json.dumps({"text": f"{split} {i}", "label": i % 2}) for i in range(count))
        written(tmp_path / f"{split}.jsonl", "\n".join(lines))
    assert pairs(f"hub:{tmp_path}@test") == [("test 0", "0"), ("test 1", "1")]
    with pytest.raises(UserError, match=r"no column 'txt'.*columns here: text, label"):
        pairs(f"hub:{tmp_path}@train", text_column="txt")


def test_published_layouts(tmp_path):
    for label, texts in {"neg": ["bad", "worse"], "pos": ["good"], "unsup": ["none"]}.items():
        (tmp_path / "train" / label).mkdir(parents=True)
        for i, text in enumerate(texts):
            written(tmp_path / "train" / label / f"{i}_1.txt", text)
    folders = pairs(tmp_path / "train", layout="class_folders")
    assert sorted(folders) == [("bad", "neg"), ("good", "pos"), ("worse", "neg")]
    assert pairs(tmp_path / "train", layout="class_folders") == folders

    trees = written(tmp_path / "t.txt", "(3 (2 It) (4 (4 's) (2 (2 -LRB-) (2 1\\/2))))\n(0 (1 Bad) (2 .))\n")
    assert pairs(trees, layout="trees") == [("It 's ( 1/2", "3"), ("Bad .", "0")]
    questions = written(tmp_path / "q.label", "DESC:manner How ?\nHUM:ind Who is it ?\n")
    assert pairs(questions, layout="coarse_and_fine") == [("How ?", "DESC"), ("Who is it ?", "HUM")]
    assert pairs(questions, layout="coarse_and_fine", label_column="fine")[1][1] == "HUM:ind"

    article = {
        "article": "A.",
        "questions": ["q", "r"],
        "options": [["a", "b"], ["c", "d", "e"]],
        "answers": ["B", "A"],
    }
    (tmp_path / "race" / "high").mkdir(parents=True)
    written(tmp_path / "race" / "high" / "1.txt", json.dumps(article))
    task = ChoiceConfig(
        train=tmp_path / "race",
        layout="race",
        text_column="article",
        pair_column="question",
        choices="options",
        label_column="answer",
    )
    found, _ = read_examples(task, task.train)
    assert [(each.texts, each.answer) for each in found] == [
        (("A.", "q", "a", "b"), 1),
        (("A.", "r", "c", "d", "e"), 0),
    ]


@pytest.mark.parametrize(
    ("layout", "content", "message"),
    [
        ("trees", "(3 (2 It) (2 is))\n(3 (2 It)\n", r"a\.txt:2: no tree"),
        ("coarse_and_fine", "DESC How ?\n", r"a\.txt:1: no line of the form COARSE:fine text"),
        ("class_folders", "x", r"a\.txt: no such folder"),
        ("race", "x", r"a\.txt: no folder with RACE's"),
    ],
)
def test_broken_layouts(layout, content, message, tmp_path):
    path = written(tmp_path / "a.txt", content)
    with pytest.raises(UserError, match=message):
        pairs(path, layout=layout)


def test_folders_without_what_they_should_have(tmp_path):
    with pytest.raises(UserError, match=r"no folder here has \.txt files"):
        pairs(tmp_path, layout="class_folders")
    written(tmp_path / "b.txt", '{"article": "A", "questions": []}')
    with pytest.raises(UserError, match=r"b\.txt: no article of RACE"):
        pairs(tmp_path, layout="race")
    with pytest.raises(UserError, match=r"none: no such file"):
        pairs(tmp_path / "none", layout="trees")


def test_the_first_rows_of_class_folders_are_of_all_classes(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        for i in range(50):
            written(tmp_path / label / f"{i}.txt", f"{label} {i}")
    labels = [label for _, label in pairs(tmp_path, layout="class_folders")][:20]
    assert 4 < np.sum(np.array(labels) == "a") < 16
