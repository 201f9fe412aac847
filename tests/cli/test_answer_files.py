"""`bakeoff fill`, `score`, `embed` and `generate` as typed, with answers in files of every form."""

import csv
import io
import json
import sys

import numpy as np
import pytest
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.cli.shared.output_files import save_records
from bakeoff.cli.shared.parquet_file import ROWS

TEXTS = ["The river finds the [MASK].", "river\t[MASK] stone", "The old [MASK]"]


@pytest.fixture(scope="module")
def bert(corpus, tmp_path_factory):
    return untrained("bert-tiny", corpus, tmp_path_factory.mktemp("bert") / "run", **{"input.length": 32}).path


@pytest.fixture(scope="module")
def gpt(corpus, tmp_path_factory):
    return untrained("gpt2-tiny", corpus, tmp_path_factory.mktemp("gpt") / "run", **{"input.length": 32}).path


def typed(capsys, *words, status=0):
    assert command([str(word) for word in words]) == status
    return capsys.readouterr()


def rows_of(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, strict=True))
    head, *lines = (line.split("\t") for line in path.read_text().splitlines())
    return [dict(zip(head, cells, strict=True)) for cells in lines]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".tsv", ".csv"])
def test_filled_masks_are_the_same_in_every_form(ending, bert, tmp_path, capsys):
    texts, out = tmp_path / "texts.txt", tmp_path / f"out{ending}"
    texts.write_text("\n".join([*TEXTS, ""]) + "\n")
    assert "4 texts" in typed(capsys, "fill", bert, "--texts", texts, "-k", 2, "--out", out).err
    found = rows_of(out)
    expected = bakeoff.load(bert).fill(TEXTS, 2)
    assert [row["text"].replace("\\t", "\t") for row in found] == [*TEXTS, ""]
    for row, own in zip(found, [*expected, []], strict=True):
        masks = json.loads(row["masks"]) if ending in (".tsv", ".csv") else row["masks"]
        assert [[each["id"] for each in mask] for mask in masks] == [[each.id for each in mask] for mask in own]
    assert json.loads(typed(capsys, "fill", bert, *TEXTS, "-k", 2, "--json").out)[0]["masks"][0][0]["token"]
    lines = typed(capsys, "fill", bert, *TEXTS, "-k", 2).out.splitlines()
    assert lines[1].split("\t")[2] == "river\\t[MASK] stone"
    assert lines[0].startswith(f"{expected[0][0][0].token} {expected[0][0][0].probability:.4f}\t")


def test_scores_of_arguments_files_and_evaluate_are_the_same(bert, tmp_path, capsys, monkeypatch):
    texts = ["The river finds the stone.", "stone"]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    expected = [each.log_probability for each in bakeoff.load(bert).score(texts)]
    said = json.loads(typed(capsys, "score", bert, *texts, "--json").out)
    assert [each["log_probability"] for each in said["results"]] == expected
    evaluated = json.loads(typed(capsys, "evaluate", bert, "--texts", tmp_path / "texts.txt", "--json").out)
    assert evaluated["results"] == said["results"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(("\n".join(texts) + "\n").encode())))
    err = typed(capsys, "score", bert, "--out", tmp_path / "scores.npy").err
    assert "2 scores" in err
    assert "pseudo-perplexity" in err
    assert np.load(tmp_path / "scores.npy").tolist() == expected
    typed(capsys, "score", bert, *texts, "--out", tmp_path / "scores.tsv")
    assert [float(row["log_probability"]) for row in rows_of(tmp_path / "scores.tsv")] == expected


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_vectors_and_texts_go_out_and_parquet_comes_in(ending, bert, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    out = tmp_path / f"vectors{ending}"
    typed(capsys, "embed", bert, "The river", "stone", "--out", out)
    found = np.array([row["vector"] for row in rows_of(out)], np.float32)
    np.testing.assert_array_equal(found, bakeoff.embed(bert, ["The river", "stone"]))
    typed(capsys, "embed", bert, "--texts", out, "--out", tmp_path / "again.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npy"), found)
    wrong = typed(capsys, "embed", bert, "--texts", out, "--text-column", "none", status=2).err
    assert "--text-column" in wrong
    assert wrong.count("\n") == 1


def test_what_is_written_goes_to_a_file(gpt, tmp_path, capsys):
    typed(capsys, "generate", gpt, "The river", "A", "--tokens", 4, "--out", tmp_path / "out.jsonl")
    rows = rows_of(tmp_path / "out.jsonl")
    config = bakeoff.GenerationConfig(tokens=4)
    assert [row["continuation"] for row in rows] == bakeoff.generate(gpt, ["The river", "A"], config)


@pytest.mark.parametrize(
    ("out", "wrong"),
    [
        ("out.xls", "answers are written to a .jsonl, .csv, .tsv or .parquet"),
        ("out.npy", "answers are written to a .jsonl, .csv, .tsv or .parquet"),
        ("none/out.jsonl", "no such folder"),
        ("there.jsonl", "is there already"),
    ],
)
def test_what_cannot_be_written_to_is_refused_before_the_work(out, wrong, bert, tmp_path, capsys):
    (tmp_path / "there.jsonl").write_text("mine")
    said = typed(capsys, "fill", bert, TEXTS[0], "--out", tmp_path / out, status=2).err
    assert wrong in said
    assert said.count("\n") == 1
    assert (tmp_path / "there.jsonl").read_text() == "mine"


@pytest.mark.parametrize("ending", [".jsonl", ".tsv", ".parquet"])
def test_a_mistake_on_the_way_leaves_nothing(ending, bert, tmp_path, capsys, monkeypatch):
    lines = "".join(f"{text}\n" for text in [*TEXTS * 30, "nothing is missing here"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    said = typed(capsys, "fill", bert, "--out", tmp_path / f"out{ending}", status=2).err
    assert "text 91 ('nothing is missing here')" in said
    assert not list(tmp_path.iterdir())


def test_types_that_the_first_answers_do_not_tell_come_later(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    blank = {"text": "", "masks": [], "likeliest": None, "value": 1}
    full = {"text": "a", "masks": [[{"token": "x", "id": 1}]], "likeliest": True, "value": 0.5, "id": "b"}
    with_all = {**full, "text": "c"}
    written = [[blank] * ROWS, [], [full], [blank], [with_all] * ROWS, [blank]]
    assert save_records(tmp_path / "out.parquet", written) == sum(map(len, written))
    expected = [{**blank, "id": None, **each} for part in written for each in part]
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == expected


def test_answers_that_come_one_by_one_make_no_row_group_each(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert save_records(tmp_path / "out.parquet", ([{"text": str(number)}] for number in range(ROWS + 1))) == ROWS + 1
    with parquet.ParquetFile(tmp_path / "out.parquet") as file:
        assert file.num_row_groups == 2
    assert [row["text"] for row in rows_of(tmp_path / "out.parquet")] == [str(number) for number in range(ROWS + 1)]


def test_a_gap_is_no_unknown_text_where_it_is_filled(corpus, gpt, tmp_path, capsys):
    t5 = untrained("t5-tiny", corpus, tmp_path / "run").path
    assert "unknown" not in typed(capsys, "generate", t5, "The [MASK] finds the [MASK].", "--tokens", 1).err
    said = typed(capsys, "generate", t5, "The [MASK] finds ЖЩ[MASK]", "--tokens", 1).err
    assert "hide 2 of 10 characters (20.0 %), such as 'ЖЩ'" in said
    assert "such as '[MASK]'" in typed(capsys, "generate", gpt, "The [MASK]", "--tokens", 1).err
