"""An option that takes one value is not given two, of which the first would be left out in silence."""

import pytest

from bakeoff.cli import run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["pretrain", "bert-tiny", "--out", "r", "--corpus", "a", "--corpus=b"],
            "--corpus a, --corpus b: it takes one value; give one of the two, or mix them: --corpus DIR:0.7,DIR:0.3",
        ),
        (
            ["finetune", "r", "--out", "f", "--train", "a.csv", "--train", "b.csv"],
            "--train a.csv, --train b.csv: it takes one value; give one of the two, or join the files into one",
        ),
        (
            ["prepare", "a.txt", "--out", "c", "--lowercase", "--cased"],
            "--lowercase, --cased: it takes one value; give one of the two",
        ),
        (["fill", "r", "a [MASK]", "-k", "3", "--k", "4"], "-k 3, --k 4: it takes one value; give one of the two"),
        (
            ["show", "bert-tiny", "--set", "training.batch=2", "--set", "training.batch=4"],
            "--set training.batch=2, --set training.batch=4: the key takes one value; give one of the two",
        ),
        (
            ["evaluate", "r", "--data", "a.csv", "--option", "header=false", "--option", "header=true"],
            "--option header=false, --option header=true: the key takes one value; give one of the two",
        ),
    ],
)
def test_two_values_of_one_option_are_refused(arguments, words, capsys):
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"bakeoff: {words}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "bert-tiny", "--set", "model.dropout=0", "--set", "training.batch=2"],  # an option of several values
        ["show", "bert-tiny", "--json", "--json"],
        ["show", "--set", "training.batch=2", "--set=training.batch=2", "--", "bert-tiny"],
    ],
)
def test_what_is_no_contradiction_is_taken(arguments, capsys):
    assert run(arguments) == 0


def test_a_value_may_look_like_an_option(capsys):
    assert run(["prepare", "--document-separator", "--out", "--document-separator", "x", "--out", "c"]) == 2
    assert "--document-separator --out, --document-separator x: it takes one value" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["layers=[]", "learning_rate=[]", "schedule={}"])
def test_an_option_without_a_value_is_refused(given, capsys):
    assert run(["contrast", "r", "--corpus", "c", "--out", "o", "--option", given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"bakeoff: --option {given}: holds no value; give one, or leave the option out for the default"


def test_the_home_folder_is_meant_by_its_sign_wherever_a_path_is_given(tmp_path, monkeypatch, capsys):
    """A shell leaves the sign in --out=~/corpus."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "text.txt").write_text("A river is old. A stone is new.\n\n" * 40)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(elsewhere)
    assert run(["prepare", "~/text.txt", "--out=~/corpus", "--document-per-line", "--vocabulary", "60"]) == 0
    assert (home / "corpus" / "corpus.json").is_file()
    assert run(["peek", "gpt-tiny", "--corpus=~/corpus"]) == 0
    assert run(["runs", "~/none"]) == 2
    assert f"{home / 'none'}: no such folder" in capsys.readouterr().err
    assert not any(elsewhere.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["prepare", "~nobody-here/text.txt", "--out", "corpus"],
        ["peek", "gpt-tiny", "--corpus", "~nobody-here/corpus"],
        ["peek", "gpt-tiny", "--corpus", "~nobody-here/a:0.5,~nobody-here/b:0.5"],
        ["import", "~nobody-here/model", "--out", "run"],
        ["runs", "~nobody-here/runs"],
        ["compare", "plan.yaml", "--out", "comparison"],
    ],
)
def test_the_home_of_a_user_who_is_not_known_is_a_folder_that_is_not_there(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan = "recipes: [gpt-tiny, bert-tiny]\ncorpus: ~nobody-here/corpus\nbudget: steps=10\nseeds: 1\ntasks: []\n"
    (tmp_path / "plan.yaml").write_text(plan)
    assert run(arguments) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("bakeoff: ")
    assert "~nobody-here" in said
