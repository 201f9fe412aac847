"""Keys that are set in vain are refused, in one line, by every verb that takes --set."""

import pytest

from bakeoff.cli import run as command_line
from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.unread_keys import UNREAD, require_effect
from tests.untrained_runs import untrained

FILES = ["--train", "a.tsv", "--text-column", "text", "--label-column", "label", "--out", "out"]
PRETRAIN = ["pretrain", "bert-tiny", "--corpus", "none", "--out", "out"]
FINETUNE = ["finetune", "bert-tiny", "--corpus", "none", *FILES]
DISTILL = ["distill", "runs/teacher", "--into", "bert-tiny", "--corpus", "none", "--out", "out"]
TUNE = ["tune", "bert-tiny", "--corpus", "none", "--out", "out"]
PEEK = ["peek", "bert-tiny", "--corpus", "none"]


@pytest.mark.parametrize(
    ("arguments", "key", "problem"),
    [
        (PRETRAIN, "tokenizer.size=99", "`bakeoff prepare --vocabulary N` makes"),
        ([*PRETRAIN, "--budget", "steps=2"], "training.budget.steps=3", "--budget replaces it"),
        ([*PRETRAIN, "--budget", "steps=2"], "training.budget={steps: 3}", "--budget replaces it"),
        ([*PRETRAIN, "--average-last", "2"], "training.average_last=3", "--average-last replaces it"),
        ([*PRETRAIN, "--save-at", "steps=1"], "training.save_at=null", "--save-at replaces it"),
        ([*PRETRAIN, "--patience", "2"], "training.early_stopping.patience=3", "--patience replaces it"),
        (DISTILL, "training.distillation=null", "RUN replaces it; give one of them"),
        (FINETUNE, "training.batch=3", "give --option batch=..."),
        (FINETUNE, "training.optimizer.lr=1", "--option learning_rate=..."),
        (FINETUNE, "training.optimizer.kind=lamb", "--option optimizer=..."),
        (FINETUNE, "training.budget.steps=3", "--option epochs=..."),
        (FINETUNE, "training.validations=3", "settings of its own; leave it out"),
        (FINETUNE, "tokenizer.size=99", "--vocabulary N"),
        ([*TUNE, "--budget", "steps=2"], "training.budget.steps=3", "--budget replaces it"),
        ([*TUNE, "--over", "model.dropout=0,0.1"], "model.dropout=0.2", "--over replaces it"),
        (TUNE, "tokenizer.kind=word", "makes a corpus with another one"),
        (PEEK, "training.optimizer.lr=1", "nothing is trained; leave it out"),
        (PEEK, "tokenizer.lowercase=false", "--lowercase or --cased"),
        (["speed", "bert-tiny"], "training.batch=3", "give --batch-tokens"),
        (["speed", "bert-tiny"], "input.length=64", "give --lengths"),
        (["speed", "bert-tiny"], "training.budget.steps=64", "leave it out"),
        (["score", "none", "text"], "training.precision=bfloat16", "scored in float32; leave it out"),
        (["score", "none", "text"], "input.cut_anew=true", "rows are those of the first epoch; leave it out"),
        (["speed", "bert-tiny"], "input.cut_anew=true", "rows are those of the first epoch; leave it out"),
        (["score", "none", "text"], "tokenizer.size=9", "the tokenizer is that of the run"),
        (["evaluate", "none", "--texts", "none"], "training.batch=3", "nothing is trained"),
        (["evaluate", "none", "--minimal-pairs", "none"], "training.batch=3", "nothing is trained"),
    ],
)
def test_a_verb_refuses_what_it_does_not_read(arguments, key, problem, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command_line([*arguments, "--set", key]) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each.startswith("bakeoff: ")]
    assert line.startswith(f"bakeoff: --set {key.partition('=')[0]}")
    assert problem in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "key", ["training.optimizer.lr=1", "training.validation_examples=4", "tokenizer.size=9", "input.cut_anew=true"]
)
def test_so_does_evaluate_with_a_corpus(key, corpus, tmp_path, capsys):
    assert command_line(["evaluate", str(tmp_path / "run"), "--corpus", str(corpus.path), "--set", key]) == 2
    assert f"--set {key.partition('=')[0]}: would change nothing here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("roberta-tiny", "objective.0.causal=0.5"),
        ("roberta-tiny", "objective.0={kind: mlm, causal: 0.5}"),
        ("roberta-tiny", "objective.0.first_rate=0.5"),
        ("roberta-tiny", "objective.0.masking=static"),
        ("gpt-tiny", "objective.0.noise=0.5"),
        ("gpt-tiny", "objective.0.z_loss=0.1"),
    ],
)
def test_what_matters_in_training_alone_is_refused_where_rows_are_measured(name, key, corpus, tmp_path, capsys):
    untrained(name, corpus, tmp_path / "run")
    run, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_text("one sentence", encoding="utf-8")
    for arguments in (["evaluate", run, "--corpus", corpus.path], ["score", run, text]):
        assert command_line([*map(str, arguments), "--set", key]) == 2
        assert "would change nothing here, because it matters in training alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verb", "key"),
    [
        ("finetune", "training.precision=float32"),
        ("finetune", "model.dropout=0.2"),
        ("pretrain", "training.budget.steps=3"),
        ("evaluate a corpus", "training.batch=3"),
        ("evaluate a mixture", "training.validation_examples=3"),
        ("speed", "training.compile=true"),
        ("peek", "training.batch=3"),
        ("score", "input.length=64"),
    ],
)
def test_what_a_verb_reads_may_be_set(verb, key):
    require_effect(verb, [key])


def test_values_of_the_api_are_looked_at_as_those_of_the_command_line():
    with pytest.raises(UserError, match=r"--set training\.clip: would change nothing here"):
        require_effect("score", {"training": {"clip": 1.0}})


def test_all_keys_are_keys_of_recipes():
    recipes = [load_recipe(name).model_dump(mode="json") for name in recipe_names()[::4]]
    for unread in (each for several in UNREAD.values() for each in several):
        for key in (*unread.keys, *unread.but, *unread.options):
            assert any(_has(values, key.split(".")) for values in recipes), key


def _has(values, path):
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True
