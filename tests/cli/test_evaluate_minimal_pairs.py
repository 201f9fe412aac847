"""`bakeoff evaluate --minimal-pairs` as a user types it, in Python and in the shell."""

import json

import pytest
from tests.conftest import sentences
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command

SENTENCES = sentences(6, seed=12)
ROWS = [
    {
        "sentence_good": good,
        "sentence_bad": " ".join(reversed(good.split())),
        "field": "syntax" if number < 4 else "semantics",
        "linguistics_term": f"term {number // 2}",
        "UID": f"group {number // 2}",
    }
    for number, good in enumerate(SENTENCES)
]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    names = ("gpt-tiny", "bert-tiny", "gpt-bert-tiny", "t5-tiny")
    return {name: untrained(name, corpus, folder / name) for name in names}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def log_probabilities(run, texts, folder):
    """What `evaluate --texts` says of them."""
    (folder / "all.txt").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    found = bakeoff.evaluate(run.path, texts=folder / "all.txt", device="cpu")
    return [each["log_probability"] for each in found["results"]]


@pytest.mark.parametrize(("name", "reading"), [("gpt-tiny", "forwards"), ("bert-tiny", "pseudo")])
def test_the_likelier_sentence_is_the_one_with_the_higher_score_of_texts(name, reading, runs, file, tmp_path):
    run = runs[name]
    found = bakeoff.evaluate(run.path, minimal_pairs=file, device="cpu")
    good, bad = (
        log_probabilities(run, [row[key] for row in ROWS], tmp_path) for key in ("sentence_good", "sentence_bad")
    )
    right = [one > other for one, other in zip(good, bad, strict=True)]
    assert found["reading"] == reading
    assert found["groups"] == {f"group {g}": sum(right[2 * g : 2 * g + 2]) / 2 for g in range(3)}
    assert found["linguistics_term"] == {f"term {g}": found["groups"][f"group {g}"] for g in range(3)}
    groups = list(found["groups"].values())
    assert found["field"] == {"syntax": sum(groups[:2]) / 2, "semantics": groups[2]}
    assert found["accuracy"] == pytest.approx(sum(groups) / 3)
    assert (found["pairs"], found["ties"]) == (6, 0)


def test_the_mean_over_pairs_and_their_number_stand_beside_that_over_groups(runs, file, tmp_path, capsys):
    """Groups of 3, 2 and 1 pairs, which the two means weigh differently."""
    for number, row in enumerate(ROWS):
        row = {**row, "UID": "abc"[(number > 2) + (number > 4)]}
        with file.open("w" if number == 0 else "a", encoding="utf-8") as opened:
            opened.write(json.dumps(row) + "\n")
    found = bakeoff.evaluate(runs["gpt-tiny"].path, minimal_pairs=file, device="cpu")
    groups = found["groups"]
    assert found["group_pairs"] == {"a": 3, "b": 2, "c": 1}
    assert found["accuracy"] == pytest.approx(sum(groups.values()) / 3)
    assert found["accuracy_of_pairs"] == pytest.approx((3 * groups["a"] + 2 * groups["b"] + groups["c"]) / 6)
    command(["evaluate", str(runs["gpt-tiny"].path), "--device", "cpu", "--minimal-pairs", str(file)])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{found['accuracy']:.4f} mean over 3 groups, {found['accuracy_of_pairs']:.4f} over pairs" in shown
    assert f"group a {groups['a']:.4f} 3 pairs" in shown
    assert f"group c {groups['c']:.4f} 1 pair" in shown


def test_a_run_of_several_readings_begins_with_forwards(runs, file):
    run = runs["gpt-bert-tiny"]
    assert bakeoff.evaluate(run.path, minimal_pairs=file, device="cpu")["reading"] == "forwards"
    found = bakeoff.evaluate(run.path, minimal_pairs=file, reading="pseudo_words", device="cpu")
    assert found["reading"] == "pseudo_words"


def test_the_table_names_all_kinds(runs, file, tmp_path, capsys):
    arguments = ["evaluate", str(runs["gpt-tiny"].path), "--device", "cpu", "--minimal-pairs"]
    assert command([*arguments, str(file)]) == 0
    rows = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    terms = [f"linguistics_term term {number}" for number in range(3)]
    groups = [f"group group {number}" for number in range(3)]
    assert rows == ["pairs", "accuracy", "field syntax", "field semantics", *terms, *groups]
    plain = tmp_path / "pairs.csv"
    plain.write_text("sentence_good,sentence_bad\nThe river,river The\n", encoding="utf-8")
    assert command([*arguments, str(plain), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["groups"]) == ["all"]
    assert "field" not in found
    assert command([*arguments, str(plain)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pairs", "accuracy"]


def test_what_is_refused(runs, file, tmp_path, capsys):
    def refused(message, name, *arguments):
        assert command(["evaluate", str(runs[name].path), *map(str, arguments)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.count("\n") == 1

    refused(
        "cannot read forwards, only pseudo, pseudo_words", "bert-tiny", "--minimal-pairs", file, "--reading", "forwards"
    )
    refused("trained on span_corruption, which gives sentences no probability", "t5-tiny", "--minimal-pairs", file)
    refused("--reading belongs to --minimal-pairs FILE", "bert-tiny", "--texts", file, "--reading", "pseudo")
    refused("--text-column belongs to", "bert-tiny", "--minimal-pairs", file, "--text-column", "good")
    refused("give either --corpus, --texts or --minimal-pairs", "bert-tiny", "--minimal-pairs", file, "--texts", file)
    (tmp_path / "other.jsonl").write_text('{"good": "x", "bad": "y"}\n', encoding="utf-8")
    refused(
        "other.jsonl:1: no field 'sentence_good' (fields here: good, bad); rename it\n",
        "gpt-tiny",
        "--minimal-pairs",
        tmp_path / "other.jsonl",
    )
    (tmp_path / "pairs.txt").write_text("a\tb\n", encoding="utf-8")
    (tmp_path / "array.json").write_text('[{"sentence_good": "x", "sentence_bad": "y"}]\n', encoding="utf-8")
    for name in ("pairs.txt", "array.json"):
        refused(f"{name}: it has no columns; give one of .jsonl, .csv", "gpt-tiny", "--minimal-pairs", tmp_path / name)
    (tmp_path / "empty.csv").touch()
    refused("empty.csv: the file holds no pairs", "gpt-tiny", "--minimal-pairs", tmp_path / "empty.csv")
    refused("none.csv: no such file", "gpt-tiny", "--minimal-pairs", tmp_path / "none.csv")


@pytest.mark.parametrize(("weights", "chosen"), [((1, 0), "forwards"), ((0, 1), "pseudo")])
def test_a_reading_that_a_stage_alone_taught_is_given_when_it_is_asked_for(weights, chosen, corpus, file, tmp_path):
    forwards, hidden = weights
    objective = [{"kind": "clm", "weight": forwards}, {"kind": "mntp", "weight": hidden}]
    curriculum = [{"until": 0.5, "weights": {"clm": hidden, "mntp": forwards}}]
    run = untrained(
        "gpt-bert-tiny", corpus, tmp_path / "run", objective=objective, **{"training.curriculum": curriculum}
    )
    found = bakeoff.evaluate(run.path, minimal_pairs=file, device="cpu")
    assert found["reading"] == chosen
    for reading in ("forwards", "pseudo"):
        assert bakeoff.evaluate(run.path, minimal_pairs=file, reading=reading, device="cpu")["reading"] == reading
