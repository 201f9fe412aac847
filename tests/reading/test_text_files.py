"""Texts of files of every kind, as they stand there, and as they arrive."""

import csv
import gzip
import importlib
import json
import os
import threading

import pytest

from bakeoff.errors import UserError
from bakeoff.reading import text_files
from bakeoff.reading.text_files import TextFile, in_memory, is_blank, read_ahead

TEXTS = ["  The river ", "", "a\u00a0b \u2003", "   ", "cafe\u0301, 字", "last"]
OTHERS = ["one", "", " two", "\u00e9", "3 ", "x"]


def table_of(rows, path):
    arrow = pytest.importorskip("pyarrow")
    importlib.import_module("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    return path


def written(folder, ending, columns):
    """A file with the columns in its order, and another one before them."""
    path = folder / f"texts{ending}"
    rows = [dict(zip(columns, cells, strict=False)) for cells in zip(TEXTS, OTHERS, strict=True)]
    kind = ending.removesuffix(".gz")
    if kind == ".parquet":
        return table_of([{"n": "0", **row} for row in rows], path)
    with (gzip.open if ending.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as file:
        if kind == ".jsonl":
            file.writelines(json.dumps({"n": 0, **row}) + "\n" for row in rows)
        elif kind in (".csv", ".tsv"):
            writer = csv.writer(file, delimiter="\t" if kind == ".tsv" else ",")
            writer.writerows([["n", *columns], *(["0", *row.values()] for row in rows)])
        else:
            file.writelines("\t".join(row.values()) + "\n" for row in rows)
    return path


@pytest.mark.parametrize("ending", ["", ".txt", ".txt.gz", ".jsonl", ".csv", ".tsv", ".jsonl.gz", ".parquet"])
def test_texts_are_those_of_the_file_unchanged(ending, tmp_path):
    path = written(tmp_path, ending, ["body"])
    file = TextFile(path, ["body"], given=ending not in ("", ".txt", ".txt.gz"))
    assert list(file) == [(text,) for text in TEXTS]
    assert list(file) == [(text,) for text in TEXTS]
    assert file.count() == len(TEXTS)
    assert not file.once


@pytest.mark.parametrize("ending", ["", ".jsonl", ".csv", ".tsv.gz", ".parquet"])
def test_pairs_stand_in_the_order_of_their_names(ending, tmp_path):
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    path = written(tmp_path, ending, ["a", "b"])
    assert list(TextFile(path, ["a", "b"])) == pairs
    if ending:
        assert list(TextFile(path, ["b", "a"])) == [(b, a) for a, b in pairs]
        with pytest.raises(UserError, match="different columns, not both a"):
            TextFile(path, ["a", "a"])


def test_an_end_of_line_is_no_part_of_a_text(tmp_path):
    (tmp_path / "lines.txt").write_bytes(b"a \r\n\r\nb\n c")
    assert list(TextFile(tmp_path / "lines.txt", ["text"])) == [("a ",), ("",), ("b",), (" c",)]


def test_lines_of_pairs_have_one_tab(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes(b"a\tb\r\n\n \t \n\t\nc\td")
    assert list(TextFile(path, ["x", "y"])) == [("a", "b"), ("", ""), ("", ""), ("", ""), ("c", "d")]
    for line, tabs in (("a\tb\tc", 2), ("a", 0)):
        path.write_text(f"a\tb\n{line}\n")
        with pytest.raises(UserError, match=rf"pairs.txt:2: {tabs} tabs; a line is a text, a tab and the other text"):
            list(TextFile(path, ["x", "y"]))


def test_a_wrong_cell_is_named_by_its_row(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
    with pytest.raises(UserError, match=r"a.jsonl:2"):
        list(TextFile(tmp_path / "a.jsonl", ["text"]))
    with pytest.raises(UserError, match="text 2 is not valid UTF-8"):
        in_memory(["a", "\udcff"])
    assert in_memory(["a", "b"], ["c", "d"]) == [("a", "c"), ("b", "d")]


def test_what_has_arrived_is_answered_while_the_writer_waits(tmp_path):
    """And a pause is no reason to read more at once."""
    os.mkfifo(tmp_path / "pipe")
    answered = threading.Event()

    def write():
        with open(tmp_path / "pipe", "w") as pipe:
            pipe.write("a\nb\nc\n")
            pipe.flush()
            answered.wait(20)
            pipe.write("x\n" * 100)

    writer = threading.Thread(target=write)
    writer.start()
    parts = read_ahead(file := TextFile(tmp_path / "pipe", ["text"]), 1000)
    assert file.once
    assert next(parts) == [("a",), ("b",), ("c",)]
    answered.set()
    assert [len(part) for part in parts] == [32, 64, 4]
    writer.join()


def test_memory_is_tidied_after_so_many_texts_or_characters(monkeypatch):
    tidied = []
    monkeypatch.setattr(text_files, "return_gaps", lambda: tidied.append(True))
    monkeypatch.setattr(text_files, "CHARACTERS_AT_ONCE", 100)
    tidier = text_files.Tidier(10)
    for texts, characters, times in ((9, 0, 0), (1, 0, 1), (9, 99, 1), (0, 1, 2), (9, 99, 2), (1, 0, 3), (9, 99, 3)):
        tidier.add(texts, characters)
        assert len(tidied) == times


def test_what_is_blank():
    assert is_blank(["", " \u3000"])
    assert is_blank([])
    assert not is_blank(["", "a"])


def test_lines_that_end_with_a_carriage_return_alone_are_refused(tmp_path):
    """Else a file of an old kind would be one text; a carriage return within a line is part of it."""
    (tmp_path / "old.txt").write_bytes(b"one\rtwo\rthree\r")
    with pytest.raises(UserError, match=r"old.txt: lines end with a carriage return alone; convert them: tr"):
        list(TextFile(tmp_path / "old.txt", ["text"]))
    (tmp_path / "one.txt").write_bytes(b"one\0two\r")
    assert list(TextFile(tmp_path / "one.txt", ["text"])) == [("one\0two",)]
    (tmp_path / "new.txt").write_bytes(b"one\rtwo\nthree\n")
    assert list(TextFile(tmp_path / "new.txt", ["text"])) == [("one\rtwo",), ("three",)]
