"""`bakeoff predict`, `generate` and `evaluate --texts` as typed: every text has its answer, in its place."""

import io
import json
import os
import subprocess
import sys

import pytest
from tests.conftest import sentences, shrink
from tests.untrained_runs import untrained

from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.generation.generate import generate as generate_texts
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

TEXTS = ["The river finds the old stone.", "", "The house", "  ", "a\tb", "The stone breaks the green mirror."]


def call(capsys, *arguments):
    status = command([str(argument) for argument in (*arguments, "--device", "cpu")])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def piped(monkeypatch, content):
    data = content if isinstance(content, bytes) else content.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


@pytest.fixture(scope="module")
def gpt(corpus, tmp_path_factory):
    return untrained("gpt-tiny", corpus, tmp_path_factory.mktemp("runs") / "gpt").path


def classifier(corpus, folder, pairs):
    rows = [f"{'yes' if 'river' in text else 'no'}\t{text}\t{text[4:]}\n" for text in sentences(80)]
    (folder / "rows.tsv").write_text("label\tone\tother\n" + "".join(rows), encoding="utf-8")
    given = {"train": folder / "rows.tsv", "text_column": "one", "label_column": "label"}
    task = ClassificationConfig(**given, pair_column="other" if pairs else None)
    config = FinetuneConfig(epochs=30, least_steps=1, learning_rate=[1e-2], batch=16)
    options = {"config": config, "tokenizer": corpus.path, "device": "cpu", "progress": False}
    return finetune(shrink("bert-tiny"), task, folder / "task", **options).path


@pytest.fixture(scope="module")
def single(corpus, tmp_path_factory):
    return classifier(corpus, tmp_path_factory.mktemp("single"), False)


@pytest.fixture(scope="module")
def pairs(corpus, tmp_path_factory):
    return classifier(corpus, tmp_path_factory.mktemp("pairs"), True)


def test_predict_answers_every_line_blank_ones_too(capsys, monkeypatch, single):
    piped(monkeypatch, "".join(text + "\n" for text in TEXTS))
    status, out, err = call(capsys, "predict", single)
    assert status == 0
    assert [line.split("\t", 2)[2] for line in out.splitlines()] == TEXTS
    assert err == "2 of 6 texts blank: what the run gives for a text without words\n"
    labels = [line.split("\t")[:2] for line in out.splitlines()]
    assert labels[1] == labels[3]  # a blank text is a text without words
    assert len({probability for _, probability in labels}) > 3
    for text, label in zip(TEXTS, labels, strict=True):
        assert call(capsys, "predict", single, text)[1] == "\t".join([*label, text]) + "\n"


def test_a_last_line_without_an_end_and_an_empty_input(capsys, monkeypatch, single):
    piped(monkeypatch, "a\n\nThe river")
    assert len(call(capsys, "predict", single)[1].splitlines()) == 3
    piped(monkeypatch, "")
    assert call(capsys, "predict", single) == (0, "", "")
    piped(monkeypatch, "")
    assert call(capsys, "predict", single, "--json") == (0, "[]\n", "")


@pytest.mark.parametrize("form", ["txt", "csv", "tsv", "jsonl", "gz"])
def test_files_of_every_form_give_the_same_answers(capsys, tmp_path, single, form):
    import csv
    import gzip

    texts = [text.replace("\t", " ") for text in TEXTS]
    file = tmp_path / f"texts.{form}"
    if form == "txt":
        file.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    elif form == "csv":
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([["one"], *([text] for text in texts)])
    elif form == "tsv":  # of a single column: a blank line is a blank text
        file.write_text("one\n" + "".join(text + "\n" for text in texts), encoding="utf-8")
    elif form == "jsonl":
        file.write_text("".join(json.dumps({"one": text, "two": 1}) + "\n" for text in texts), encoding="utf-8")
    else:
        file = tmp_path / "texts.txt.gz"
        file.write_bytes(gzip.compress("".join(text + "\n" for text in texts).encode()))
    status, out, _ = call(capsys, "predict", single, "--texts", file)
    assert status == 0
    assert out == call(capsys, "predict", single, *texts)[1]
    if form in ("csv", "tsv", "jsonl"):
        status, out, err = call(capsys, "predict", single, "--texts", file, "--text-column", "three")
        assert (status, out) == (2, "")
        assert "three" in err
        assert "--text-column" in err


def test_line_breaks_of_a_record_do_not_break_the_line_of_its_answer(capsys, tmp_path, single, gpt):
    (tmp_path / "texts.jsonl").write_text(json.dumps({"one": "The\nriver\u2028a"}) + "\n", encoding="utf-8")
    _, out, _ = call(capsys, "predict", single, "--texts", tmp_path / "texts.jsonl")
    assert out.count("\n") == 1
    assert out.endswith("\tThe\\nriver\\u2028a\n")
    _, out, _ = call(capsys, "generate", gpt, "--texts", tmp_path / "texts.jsonl", "--text-column", "one")
    assert out.count("\n") == 1


def test_pairs_come_from_lines_columns_and_arguments(capsys, monkeypatch, tmp_path, pairs):
    rows = [("The river", "a b"), ("", ""), ("The house", "")]
    _, expected, _ = call(capsys, "predict", pairs, *(a for a, _ in rows), *(x for _, b in rows for x in ("--pair", b)))
    assert [line.split("\t", 2)[2] for line in expected.splitlines()] == ["\t".join(row) for row in rows]
    piped(monkeypatch, "The river\ta b\n\nThe house\t\n")
    status, out, err = call(capsys, "predict", pairs)
    assert (status, out) == (0, expected)
    assert err.startswith("1 of 3 texts blank")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"x": a, "y": b}) + "\n" for a, b in rows), encoding="utf-8")
    columns = ["--text-column", "x", "--pair-column", "y"]
    assert call(capsys, "predict", pairs, "--texts", tmp_path / "a.jsonl", *columns)[1] == expected
    piped(monkeypatch, "The river\ta b\nThe house\n")
    status, out, err = call(capsys, "predict", pairs)
    assert status == 2
    assert err == "bakeoff: standard input:2: 0 tabs; a line is a text, a tab and the other text\n"


def test_generate_answers_every_line_blank_ones_too(capsys, monkeypatch, tmp_path, gpt):
    lines = "".join(text + "\n" for text in TEXTS)
    piped(monkeypatch, lines)
    status, out, err = call(capsys, "generate", gpt, "--tokens", 4)
    assert status == 0
    assert len(out.splitlines()) == len(TEXTS)
    assert err == "2 of 6 texts blank: a text of the model's own\n"
    (tmp_path / "texts.txt").write_text(lines, encoding="utf-8")
    assert call(capsys, "generate", gpt, "--tokens", 4, "--texts", tmp_path / "texts.txt")[1] == out
    piped(monkeypatch, lines)
    found = json.loads(call(capsys, "generate", gpt, "--tokens", 4, "--json", "--texts", "-")[1])
    assert [each["prompt"] for each in found] == TEXTS
    assert [each["continuation"] for each in found] == out.splitlines()


def test_a_sequence_to_sequence_run_leaves_blank_lines_blank(capsys, monkeypatch, parallel_corpus, tmp_path):
    run = untrained("transformer-translation-tiny", parallel_corpus, tmp_path / "run").path
    piped(monkeypatch, "1 2\n\n3\n")
    status, out, err = call(capsys, "generate", run, "--tokens", 4)
    assert status == 0
    assert len(out.split("\n")) == 4
    assert out.split("\n")[1] == ""
    assert err == "1 of 3 texts blank: nothing\n"


def test_evaluate_reads_standard_input_and_counts_blank_lines(capsys, monkeypatch, tmp_path, gpt):
    lines = "".join(text + "\n" for text in TEXTS)
    (tmp_path / "texts.txt").write_text(lines, encoding="utf-8")
    _, expected, _ = call(capsys, "evaluate", gpt, "--texts", tmp_path / "texts.txt", "--json")
    piped(monkeypatch, lines)
    status, out, _ = call(capsys, "evaluate", gpt, "--texts", "-", "--json")
    assert status == 0
    assert json.loads(out) == json.loads(expected) | {"texts_file": "standard input"}
    assert json.loads(out)["blank"] == 2
    assert [each["tokens"] > 0 for each in json.loads(out)["results"]] == [bool(text.strip()) for text in TEXTS]
    piped(monkeypatch, lines)
    assert "blank 2" in call(capsys, "evaluate", gpt, "--texts", "-")[1]
    piped(monkeypatch, "")
    assert json.loads(call(capsys, "evaluate", gpt, "--texts", "-", "--json")[1])["results"] == []


def test_invalid_utf8_names_the_line(capsys, monkeypatch, tmp_path, single, gpt):
    data = b"The river\nThe \xff\n"
    (tmp_path / "texts.txt").write_bytes(data)
    for verb in (["predict", single], ["generate", gpt], ["evaluate", gpt]):
        status, out, err = call(capsys, *verb, "--texts", tmp_path / "texts.txt")
        assert (status, out) == (2, "")
        assert f"{tmp_path / 'texts.txt'}:2: not valid UTF-8 (byte 0xff)" in err
        piped(monkeypatch, data)
        status, _, err = call(capsys, *verb, "--texts", "-")
        assert status == 2
        assert "standard input:2: not valid UTF-8 (byte 0xff)" in err
        assert len(err.splitlines()) == 1
        piped(monkeypatch, data)
        assert call(capsys, *verb, "--texts", "-", "--errors", "replace")[0] == 0
    for verb in (["predict", single], ["generate", gpt]):
        status, _, err = call(capsys, *verb, "The river", os.fsdecode(b"\xff"))
        assert (status, err) == (2, "bakeoff: '\\udcff' is not valid UTF-8; rename the file, or convert the text\n")


def test_what_is_refused_is_one_line(capsys, monkeypatch, tmp_path, single, pairs, gpt):
    def refused(*arguments):
        status, out, err = call(capsys, *arguments)
        assert (status, out) == (2, ""), err
        assert len(err.splitlines()) == 1
        return err

    for verb in (["predict", single], ["generate", gpt], ["evaluate", gpt, "--texts", "-"]):
        monkeypatch.setattr(sys, "stdin", None)
        assert "standard input is closed" in refused(*verb)
    for name in ("temperature", "length-penalty", "top-p"):
        for value in ("inf", "nan"):
            assert name.replace("-", "_") in refused("generate", gpt, "a", f"--{name}", value).replace("-", "_")
    (tmp_path / "texts.txt").write_text("a\n", encoding="utf-8")
    assert "given as arguments" in refused("predict", single, "a", "--texts", tmp_path / "texts.txt")
    assert "its lines are the texts" in refused(
        "predict", single, "--texts", tmp_path / "texts.txt", "--text-column", "a"
    )
    assert "no such file" in refused("generate", gpt, "--texts", tmp_path / "none.txt")
    assert "a folder" in refused("generate", gpt, "--texts", tmp_path)
    assert "single texts" in refused("predict", single, "a", "--pair", "b")
    assert "single texts" in refused("predict", single, "--pair-column", "b")
    assert "pairs of texts" in refused("predict", pairs, "a")
    assert "one for each" in refused("predict", pairs, "a", "b", "--pair", "c")
    for verb in (["generate", single, "a"], ["inspect", single], ["pretrain", "bert-tiny", "--from", single]):
        options = ["--out", tmp_path / "new"] if verb[0] == "pretrain" else []
        if verb[0] == "pretrain":
            options += ["--corpus", tmp_path]
        err = refused(*verb, *options)
        assert "not finished" not in err
    assert "a fine-tuned run, which `bakeoff predict` uses" in refused("generate", single, "a")
    with pytest.raises(UserError, match="a fine-tuned run, which `bakeoff predict` uses"):
        generate_texts(Run(single), ["a"])
    assert "text 2 ('river river" in refused("generate", gpt, "The", "river " * 600)


def bakeoff(*arguments, **options):
    command_line = [sys.executable, "-m", "bakeoff", *map(str, arguments)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command_line, env=buffered, **(pipes | options))


def test_one_who_waits_for_an_answer_gets_it(single):
    """A program may hold a conversation: each line is answered while standard input stays open."""
    with bakeoff("predict", single, "--device", "cpu", stdin=subprocess.PIPE) as process:
        for text in ("The river", "", "The house finds"):
            process.stdin.write(text.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().decode().split("\t", 2)[2] == text + "\n"
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert err.startswith(b"1 of 3 texts blank")


@pytest.mark.slow
def test_a_closed_pipe_ends_in_silence(single, tmp_path):
    (tmp_path / "many.txt").write_text("The river\n" * 5000, encoding="utf-8")
    process = bakeoff("predict", single, "--texts", tmp_path / "many.txt", "--device", "cpu")
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


@pytest.mark.slow
def test_output_that_was_held_back_meets_a_closed_pipe():
    """So little that it is written as the program ends."""
    reading, writing = os.pipe()
    process = bakeoff("--version", stdout=writing)
    os.close(writing)
    os.close(reading)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


def test_standard_error_that_is_closed_is_not_standard_output():
    script = f"{sys.executable} -m bakeoff show nosuch 2>&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.slow
def test_answers_come_where_standard_error_is_closed(single):
    script = f"{sys.executable} -m bakeoff predict {single} 'The river' --device cpu 2>&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout.endswith(b"\tThe river\n")


@pytest.mark.slow
def test_standard_input_that_is_closed_and_process_substitution(single, gpt):
    script = f"{sys.executable} -m bakeoff predict {single} --device cpu <&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"bakeoff: standard input is closed")
    script = f"{sys.executable} -m bakeoff evaluate {gpt} --texts <(printf 'The river\\n\\n') --device cpu --json"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert len(json.loads(done.stdout)["results"]) == 2
