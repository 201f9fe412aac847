"""`bakeoff evaluate --texts` as a user types it."""

import json

import pytest
from tests.untrained_runs import untrained

from bakeoff.cli import run as command

TEXTS = ["The river finds the old stone.", "", "river " * 40]


@pytest.fixture(scope="module")
def gpt(corpus, tmp_path_factory):
    return untrained("gpt-tiny", corpus, tmp_path_factory.mktemp("runs") / "gpt")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return tmp_path / "texts.txt"


def call(capsys, *arguments):
    status = command([str(argument) for argument in (*arguments, "--device", "cpu")])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_each_text_has_a_row_and_all_have_totals(capsys, gpt, file):
    status, out, _ = call(capsys, "evaluate", gpt.path, "--texts", file)
    assert status == 0
    heading, *rows = out.split("\n\n")[0].splitlines()
    assert heading.split() == ["log-probability", "tokens", "per", "token", "text"]
    assert len(rows) == len(TEXTS)
    assert rows[1].split() == ["0.0000", "0", "-"]
    assert rows[0].endswith(TEXTS[0])
    assert rows[2].endswith("...")
    value, tokens, share = rows[0].split()[:3]
    assert float(value) / int(tokens) == pytest.approx(float(share), abs=1e-4)
    totals = out.split("\n\n")[1]
    assert "texts            3  words 46" in totals
    assert {line.split("  ")[0] for line in totals.splitlines()} == {
        "texts",
        "log-probability",
        "perplexity",
        "bits per byte",
    }


def test_json_is_one_object_with_a_line_a_text(capsys, gpt, file):
    _, out, _ = call(capsys, "evaluate", gpt.path, "--texts", file, "--json", "--set", "input.length=16")
    found = json.loads(out)
    assert len(found["results"]) == len(TEXTS)
    assert [json.loads(line.rstrip(",")) for line in out.splitlines()[1:-1]] == found["results"]
    assert found["log_probability"] == pytest.approx(sum(each["log_probability"] for each in found["results"]))
    assert found["set"] == {"input.length": 16}
    _, out, _ = call(capsys, "evaluate", gpt.path, "--texts", file, "--json", "--last-word")
    assert [each["word"] for each in json.loads(out)["results"]] == ["stone.", "", "river"]


def test_last_words_say_whether_they_are_likeliest(capsys, gpt, file):
    _, out, _ = call(capsys, "evaluate", gpt.path, "--texts", file, "--last-word")
    rows = out.split("\n\n")[0].splitlines()
    assert rows[0].split() == ["log-probability", "tokens", "likeliest", "last", "word"]
    assert rows[1].split()[2] in ("yes", "no")
    assert rows[2].split() == ["0.0000", "0", "-"]
    assert "last words       accuracy" in out


def test_nothing_is_printed_where_a_line_is_wrong(capsys, gpt, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "river"}\n{"text": 5}\n', encoding="utf-8")
    status, out, err = call(capsys, "evaluate", gpt.path, "--texts", tmp_path / "rows.jsonl", "--json")
    assert (status, out) == (2, "")
    assert err.rstrip().endswith("rows.jsonl:2: 'text' holds int instead of text")
    (tmp_path / "bytes.txt").write_bytes(b"river\n\xff\n")
    status, out, err = call(capsys, "evaluate", gpt.path, "--texts", tmp_path / "bytes.txt")
    assert (status, out) == (2, "")
    assert "bytes.txt:2: not valid UTF-8" in err
    status, out, _ = call(capsys, "evaluate", gpt.path, "--texts", tmp_path / "bytes.txt", "--errors", "replace")
    assert status == 0
