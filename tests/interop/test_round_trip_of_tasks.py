"""What a fine-tuned run has learnt and decided goes out and comes back: exported, imported, it answers as before."""

import json
import shutil

import pytest

import bakeoff
from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict
from tests.conftest import shrink
from tests.interop.fitted_runs import files, fitted, sentences

transformers = pytest.importorskip("transformers")

FILES = {"train", "dev", "test"}
OF_ROWS = ("length", "truncate", "pooling", "pooler", "layers", "separators")
LONG = [f"{text} {text} {text[::-1]} {text}" for text in sentences(6, seed=2)]


def question(number, text):
    """One of three has no answer, so that dev settles when none is given."""
    none = number % 3 == 0
    return {"q": "two", "c": f"stone {text}", "a": "" if none else text.split()[0]}


CASES = {
    "classes": (
        ClassificationConfig,
        lambda n, t: {"t": t, "u": t[::-1], "y": "cab"[n % 3]},
        {"text_column": "t", "pair_column": "u", "label_column": "y", "metric": "macro_f1"},
        {"truncate": "windows", "length": 13},
        (LONG, LONG[::-1]),
    ),
    "labels": (
        MultilabelConfig,
        lambda n, t: {"t": t, "y": "|".join(sorted({t.split()[0], t.split()[-1]}))},
        {"text_column": "t", "label_column": "y", "between_labels": "|", "threshold": 0.27},
        {"truncate": "head+tail", "length": 12},
        (LONG,),
    ),
    "numbers": (
        RegressionConfig,
        lambda n, t: {"t": t, "y": 100 + 5 * len(t)},
        {"text_column": "t", "label_column": "y", "metric": "mean_absolute_error"},
        {"length": 11},
        (LONG,),
    ),
    "tags": (
        TaggingConfig,
        lambda n, t: {"t": t.split(), "y": ["B-X" if len(w) % 2 else "I-X" for w in t.split()]},
        {"text_column": "t", "label_column": "y", "legal": True},
        {"length": 14},
        (LONG,),
    ),
    "choices": (
        ChoiceConfig,
        lambda n, t: {"t": t, "a": t[::-1], "b": "stone", "y": 1 + n % 2},
        {"text_column": "t", "choices": ["a", "b"], "label_column": "y", "first_choice": 1},
        {"length": 15},
        None,
    ),
    "answers": (
        QuestionAnsweringConfig,
        question,
        {"text_column": "q", "pair_column": "c", "label_column": "a", "longest_answer": 3, "n_best": 4, "stride": 5},
        {"length": 16},
        (["two"] * len(LONG), [f"stone {text}" for text in LONG]),
    ),
}
CROSSED = [
    pytest.param(case, recipe, marks=[pytest.mark.slow] if recipe != "bert-tiny" else [])
    for case in CASES
    for recipe in ("bert-tiny", "conv-light-encoder-tiny")
]
"""By a class of transformers, and by code of its own."""


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


def same(one, other):
    """Answers alike but for the last digits of their numbers."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == pytest.approx(other, abs=2e-5, rel=1e-5) if isinstance(one, float) else one == other


@pytest.mark.parametrize(("case", "recipe"), CROSSED)
def test_everything_that_was_learnt_comes_back(case, recipe, corpus, tmp_path):
    kind, make, settings, changes, texts = CASES[case]
    given = files(tmp_path, make)
    pooling = {"pooling": "cls"} if recipe == "bert-tiny" else {}
    run, _ = fitted(shrink(recipe), kind(**given, **settings), corpus, tmp_path, **changes, **pooling)
    first = FinetunedRun.open(run)
    code = (tmp_path / "out/modeling_bakeoff.py").is_file()
    assert code == (recipe != "bert-tiny")
    back = import_model(tmp_path / "out", tmp_path / "back")
    assert isinstance(back, FinetunedRun)
    before, after = (each.task.model_dump(exclude=FILES) for each in (first, back))
    assert before == after
    if kind is not RegressionConfig:  # whose scale the last map has taken over
        assert back.learned.labels == first.learned.labels
    of_tokens = kind in (TaggingConfig, QuestionAnsweringConfig)  # whose heads pool nothing
    for name in OF_ROWS[:2] if of_tokens else OF_ROWS:
        assert getattr(back.config, name) == getattr(first.config, name), name
    if kind is QuestionAnsweringConfig:
        assert first.learned.unanswerable
        assert first.learned.threshold != 0
    own, again = (
        bakeoff.evaluate(each, data=given["test"])["scores"] if texts is None else predict(each, *texts, device="cpu")
        for each in (run, back.path)
    )
    assert same(own, again)
    assert str(tmp_path) not in (tmp_path / "out/config.json").read_text()
    done = export(back.path, tmp_path / "again")
    assert said(done.path)["bakeoff"] == said(tmp_path / "out")["bakeoff"]


def said(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.fixture(scope="module")
def exported(corpus, tmp_path_factory):
    """A reader with questions that have no answer, as it goes out."""
    folder = tmp_path_factory.mktemp("reader")
    kind, make, settings, changes, _ = CASES["answers"]
    fitted(shrink("bert-tiny"), kind(**files(folder, make), **settings), corpus, folder, **changes)
    return folder / "out"


WRONG = {
    "nothing of ours": ("threshold", "bakeoff: task, labels and rows are wanted"),
    "no settings": ({"task": 1, "labels": {}, "rows": {}}, "bakeoff: task: settings are wanted"),
    "a file": ({"task": {"train": "/etc/passwd"}}, "bakeoff: task: 'train' does not belong there"),
    "an unknown setting": ({"task": {"longest_anser": 3}}, "did you mean 'longest_answer'?"),
    "labels of another kind": ({"labels": ["a"]}, "bakeoff: labels: not what Bakeoff writes there"),
    "rows that are too long": ({"rows": {"length": 10**9}}, "bakeoff: rows.length: 8 to "),
    "no rows": ({"rows": {"length": None}}, "bakeoff: rows.length: 8 to "),
    "another setting of rows": ({"rows": {"freeze": "model"}}, "bakeoff: rows: 'freeze' does not belong there"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_run_has_said_is_one_line(case, exported, tmp_path):
    change, message = WRONG[case]
    shutil.copytree(exported, tmp_path / "theirs")
    config = said(exported)
    if isinstance(change, str):
        config["bakeoff"] = change
    else:
        for name, value in change.items():
            own = config["bakeoff"][name]
            config["bakeoff"][name] = own | value if isinstance(value, dict) else value
    (tmp_path / "theirs/config.json").write_text(json.dumps(config))
    with pytest.raises(UserError) as error:
        import_model(tmp_path / "theirs", tmp_path / "run")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]


def test_a_head_that_was_trained_elsewhere_since_has_its_own_labels(exported, tmp_path):
    """transformers keeps the key, which is then that of a head that is no more."""
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(
        exported, id2label={0: "x", 1: "y"}, label2id={"x": 0, "y": 1}
    )
    shutil.copytree(exported, tmp_path / "theirs")
    theirs.save_pretrained(tmp_path / "theirs")
    assert "bakeoff" in said(tmp_path / "theirs")
    back = import_model(tmp_path / "theirs", tmp_path / "run")
    assert isinstance(back, FinetunedRun)
    assert back.learned.tags == ["x", "y"]
