"""`check --task`: what is counted, what is warned of, and what is told of mistakes, before anything is trained."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyword_task import labelled, write_jsonl, write_tsv

from bakeoff.cli import run as run_cli
from bakeoff.errors import UserError
from bakeoff.tasks.checks.examine import check_task
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tokenizer.tokenizer import Tokenizer


def config(folder, **parts):
    paths = {name: write_tsv(folder / f"{name}.tsv", rows) for name, rows in parts.items()}
    return ClassificationConfig(**paths, text_column="text", label_column="label")


def rows(*pairs):
    return [{"text": text, "label": label} for text, label in pairs]


def plenty(count=20):
    return rows(*((f"{label} {i}", label) for i in range(count) for label in "ab"))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["x", "y z", "z", "w w w"]), st.sampled_from("abc")), min_size=1, max_size=20)
)
def test_counts_are_those_of_a_naive_count(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("counts")
    test = rows(("new", "a"), ("neu", "b"), ("nuevo", "b"))
    found = check_task(config(folder, train=rows(*pairs), dev=rows(("x", "a")), test=test))
    train = found.splits[0]
    counts = Counter(label for _, label in pairs)
    if len(counts) > 1 and {"a", "b"} <= counts.keys():
        most = min(counts, key=lambda label: (-counts[label], label))
        assert found.simplest["accuracy"] == pytest.approx([row["label"] for row in test].count(most) / 3, abs=1e-6)
    assert {each.label: each.share for each in train.labels} == pytest.approx(
        {label: count / len(pairs) for label, count in counts.items()}, abs=1e-6
    )
    assert {each.label: each.count for each in train.labels} == Counter(label for _, label in pairs)
    for each in train.labels:
        first = next(place for place, (_, label) in enumerate(pairs) if label == each.label)
        assert (each.example, each.line) == (pairs[first][0], first + 2)
    assert train.repeated == sum(pair in pairs[:place] for place, pair in enumerate(pairs))
    assert train.contradictory == sum(
        pair not in pairs[:place] and pair[0] in [text for text, _ in pairs[:place]] for place, pair in enumerate(pairs)
    )
    assert found.overlaps == ({"dev in train": 1} if "x" in [text for text, _ in pairs] else {})
    lengths = np.sort([len(text.split()) for text, _ in pairs])
    assert train.lengths.unit == "words"
    at_least = [0, -(-50 * (len(pairs) - 1) // 100), -(-90 * (len(pairs) - 1) // 100), -1]
    assert [train.lengths.quantiles[f"{share} %"] for share in (0, 50, 90, 100)] == lengths[at_least].tolist()
    assert train.lengths.mean == round(float(lengths.mean()), 1)


def test_lengths_in_tokens_are_those_of_training(run, recipe, corpus, tmp_path):
    task = config(tmp_path, train=labelled(60, 1), dev=labelled(9, 2), test=labelled(9, 3))
    found = check_task(task, str(run.path), length=12)
    tokenizer = Tokenizer.load(corpus)
    counts = np.array([len(tokenizer.encode([row["text"]])[0][0]) + 2 for row in labelled(60, 1)])  # [CLS] and [SEP]
    lengths = found.splits[0].lengths
    assert (lengths.unit, lengths.limit, lengths.quantiles["100 %"]) == ("tokens", 12, counts.max())
    assert lengths.longer == pytest.approx((counts > 12).mean(), abs=1e-6)
    assert check_task(task, tokenizer=corpus).splits[0].lengths.quantiles == lengths.quantiles
    assert check_task(task, tokenizer=corpus).splits[0].lengths.longer is None
    assert check_task(task, str(run.path)).splits[0].lengths.limit == recipe.input.length
    quick = FinetuneConfig(epochs=1, least_steps=0, length=12)
    result = finetune(run.path, task, tmp_path / "out", config=quick, device="cpu", progress=False)
    lost, all = np.maximum(counts - 12, 0).sum(), (counts - 2).sum()
    cut = f"{(counts > 12).sum()} of the 60 rows of train cut to 12 tokens"
    assert f"{cut}: {100 * lost / all:.1f} % of the tokens are not read" in result.notes
    assert result.cut["train"].tokens == lost
    assert any(warning.endswith("(--length)") for warning in found.warnings)


def test_all_mistakes_are_told_at_once(tmp_path):
    task = config(tmp_path, train=plenty(), dev=rows(("x", "c"), ("y", "d"), ("z", "a")), test=rows(("q", "e")))
    found = check_task(task)
    advice = "; mend it, or leave its rows out by null in label_names"
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        f"the label 'c' does not occur in {task.train}, which has a, b{advice} (and 1 more of dev)",
        f"the label 'e' does not occur in {task.train}, which has a, b{advice}",
    ]
    assert {split.split: split.examples for split in found.splits} == {"train": 40, "dev": 3, "test": 1}
    task.test.write_text("")
    found = check_task(task)
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "the file holds no rows",
        f"the label 'c' does not occur in {task.train}, which has a, b{advice} (and 1 more of dev)",
    ]


@pytest.mark.parametrize(
    ("train", "dev", "warning"),
    [
        (
            plenty() + rows(("a 3", "b")),
            plenty(3),
            "1 of the 41 examples of train has the texts of another one with another label, as lines 8 and 42",
        ),
        (plenty() + rows(("a 3", "a")), plenty(3), "1 of the 41 examples of train repeats an earlier one"),
        (plenty() + rows(("a  3 ", "a")), plenty(3), "1 of the 41 examples of train repeats an earlier one"),
        (plenty() + rows((" ", "a")), plenty(3), "1 blank text in train"),
        (plenty() + rows(("caf\ufffd", "a")), plenty(3), "1 of the 41 examples of train holds U+FFFD"),
        (plenty(9) + rows(*((f"x {i}", "c") for i in range(99))), plenty(3), "84.6% of train are 'c'"),
        (plenty() + rows(("x", "c"), ("y", "c")), plenty(3), "1 label with fewer than 10 examples in train: c (2)"),
        (plenty() + rows(("x", "A")), plenty(3), "the labels 'A', 'a' differ in capitals, accents, spaces or"),
        (plenty() + rows(("x", "\u200bÄ")), plenty(3), "the labels 'a', '\u200bÄ' differ in capitals, accents, spaces"),
        (plenty(), rows(("new", "a")), "1 label of train missing in dev: b"),
        (plenty(), plenty(3), "train has the texts of 6 of the 6 examples of dev, too"),
        (plenty(150), rows(("a 3", "a"), ("v", "b")), "train has the texts of 1 of the 2 examples of dev, too"),
        (plenty(150), rows(("a\u00a03", "a"), ("v", "b")), "train has the texts of 1 of the 2 examples of dev, too"),
    ],
)
def test_likely_mistakes(train, dev, warning, tmp_path):
    found = check_task(config(tmp_path, train=train, dev=dev, test=rows(("t", "a"), ("u", "b"))))
    assert any(text.startswith(warning) for text in found.warnings), found.warnings
    assert not found.problems


@pytest.mark.parametrize(
    ("train", "warned"),
    [
        (rows(*((f"{label} {i}", label) for label, count in (("a", 40), ("b", 10)) for i in range(count))), True),
        (rows(*((f"{label} {i}", label) for label, count in (("a", 39), ("b", 10)) for i in range(count))), False),
    ],
)
def test_a_label_is_most_of_train_from_four_fifths_on_and_rare_below_ten(train, warned, tmp_path):
    found = check_task(
        config(tmp_path, train=train, dev=rows(("t", "a"), ("u", "b")), test=rows(("v", "a"), ("w", "b")))
    )
    assert [each.startswith("80.0% of train are 'a'") for each in found.warnings] == [True] * warned


def test_a_run_that_cannot_learn_the_task_is_told(run, tmp_path, capsys):
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n" + "".join(f"text {i}\tother {i}\n" for i in range(20)))
    task = SequenceToSequenceConfig(train=path, text_column="a", label_column="b")
    assert check_task(task).problems == []
    (problem,) = check_task(task, str(run.path)).problems
    assert "cannot write targets" in problem
    with pytest.raises(UserError, match=re.escape(problem)):
        finetune(run.path, task, tmp_path / "out", device="cpu", progress=False)


def test_of_many_labels_eight_are_named_and_the_others_counted(tmp_path):
    train = plenty() + rows(*((f"x {i}", f"c{i}") for i in range(11)))
    found = check_task(config(tmp_path, train=train, dev=plenty(1), test=plenty(1)))
    named = ", ".join(f"c{i} (1)" for i in (0, 1, 10, 2, 3, 4, 5, 6))
    assert f"11 labels with fewer than 10 examples in train: {named} and 3 more" in found.warnings


@pytest.mark.parametrize(("length", "warned"), [(11, True), (12, False)])
def test_cut_rows_are_warned_of_from_a_tenth_on(length, warned, corpus, tmp_path):
    """[CLS] and [SEP] stand around every text."""
    sizes = [10] * 2 + [9] * 17 + [20]
    train = rows(*((" ".join(["apple"] * size), "ab"[n % 2]) for n, size in enumerate(sizes)))
    found = check_task(
        config(tmp_path, train=train, dev=plenty(1), test=plenty(1)), "bert-tiny", tokenizer=corpus, length=length
    )
    lengths = found.splits[0].lengths
    assert (lengths.limit, lengths.longer) == (length, pytest.approx(3 / 20 if warned else 1 / 20))
    assert any("of the rows of train are longer than" in each for each in found.warnings) == warned


def test_nothing_is_warned_of_where_nothing_is_wrong(tmp_path):
    parts = {name: rows(*((f"{name} {i}", "ab"[i % 2]) for i in range(40))) for name in ("train", "dev", "test")}
    found = check_task(config(tmp_path, **parts))
    assert (found.warnings, found.problems, found.notes, found.overlaps) == ([], [], [], {})
    assert found.simplest["accuracy"] == 0.5


def test_every_kind_is_looked_at(tmp_path):
    numbers = write_jsonl(tmp_path / "n.jsonl", [{"text": f"x {i % 30}", "label": i / 7} for i in range(40)])
    found = check_task(RegressionConfig(train=numbers, text_column="text", label_column="label"))
    assert not any(split.labels for split in found.splits)
    assert found.splits[0].contradictory > 0

    words = tmp_path / "w.conll"
    words.write_text("".join(f"Ann{i} I-PER\nran O\n\n" for i in range(40)))
    found = check_task(TaggingConfig(train=words))
    assert {each.label: (each.count, each.example[:3]) for each in found.splits[0].labels} == {
        "I-PER": (28, "Ann"),
        "O": (28, "ran"),
    }
    assert "are IOB1: I- begins a span at 28 places (I-PER at the beginning of a sentence 28)" in found.notes[-1]

    tagged = [{"words": ["Ann", " " if i == 3 else f"ran{i}"], "tags": ["X", "O"]} for i in range(40)]
    path = write_jsonl(tmp_path / "t.jsonl", tagged)
    task = TaggingConfig(train=path, text_column="words", label_column="tags")
    assert "1 blank word in train" in check_task(task).warnings
    assert "1 blank word in train" in load_task(task).notes

    choices = [{"text": f"c {i}", "choices": ["a", "b"], "label": i % 2} for i in range(40)]
    path = write_jsonl(tmp_path / "c.jsonl", choices)
    found = check_task(ChoiceConfig(train=path, text_column="text", choices="choices", label_column="label"))
    assert [each.label for each in found.splits[0].labels] == ["0", "1"]


def test_answers_that_are_not_in_their_contexts_are_told(tmp_path, corpus):
    lines = [{"question": f"What is {n}?", "context": f"It is a{n}.", "answer": f"a{n}"} for n in range(20)]
    lines += [{"question": "And 3?", "context": "It is b.", "answer": "bee"}] * 2
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    task = QuestionAnsweringConfig(train=tmp_path / "train.jsonl", test=tmp_path / "test.jsonl")
    lines[3]["answer"] = ""
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = check_task(task)
    assert [(each.label, each.count, each.example) for each in found.splits[0].labels] == [
        ("an answer", 19, "What is 0?"),
        ("no answer", 1, "What is 3?"),
    ]
    assert not any("of train are" in each for each in found.warnings)  # no model answers so each time
    assert "1 label with fewer than 10 examples in train: no answer (1)" in found.warnings
    for measured in ({}, {"tokenizer": corpus}):
        notes = [each for each in check_task(task, **measured).notes if each.startswith("test: ")]
        assert len(notes) == 1
        assert notes[0].startswith("test: 2 of 22 questions have no answer that stands in the context, the first line")


def test_the_command_line_tells_and_exits(run, tmp_path, capsys):
    task = config(tmp_path, train=plenty(), dev=plenty(3), test=rows(("t", "a"), ("u", "b")))
    files = [word for name in ("train", "dev", "test") for word in (f"--{name}", str(getattr(task, name)))]
    columns = ["--text-column", "text", "--label-column", "label"]
    assert run_cli(["check", str(run.path), *files, *columns]) == 0
    out = capsys.readouterr().out
    assert "train: classification, by accuracy" in out
    assert "  b         20   50.0%  b 0 (line 3)" in out
    assert "warning: train has the texts of 6 of the 6 examples of dev, too" in out
    assert run_cli(["check", *files, *columns, "--json", "--option", "train_rows=5"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"][0]["examples"] == 5
    assert run_cli(["check", *files, *columns, "--option", "label_names={a: c, b: null}"]) == 2
    out, err = capsys.readouterr()
    assert "problem: " in out
    assert err.startswith("bakeoff: ")
    assert err.count("\n") == 1
    assert run_cli(["check", str(run.path)]) == 0
    assert "files are what was written" in capsys.readouterr().out


def test_a_data_set_is_fine_tuned_by_its_name(run, tmp_path, capsys):
    for name, count in (("train", 60), ("dev", 12)):
        made = [{"sentence": row["text"], "label": row["label"]} for row in labelled(count, count)]
        write_tsv(tmp_path / f"{name}.tsv", made)
    shown = ["--dataset", "sst2", "--data", str(tmp_path)]
    assert run_cli(["check", *shown]) == 0
    assert "note: the official test has no labels" in capsys.readouterr().out
    quick = [word for key in ("epochs=1", "least_steps=0", "split_seed=3") for word in ("--option", key)]
    assert (
        run_cli(["finetune", str(run.path), *shown, *quick, "--metric", "macro_f1", "--out", str(tmp_path / "out")])
        == 0
    )
    assert "official test has no labels" in capsys.readouterr().out
    settings = (tmp_path / "out" / "task.yaml").read_text()
    assert "name: sst2" in settings
    assert "metric: macro_f1" in settings
    assert "split_seed: 3" in settings
    assert run_cli(["evaluate", str(tmp_path / "out"), "--data", str(tmp_path / "dev.tsv")]) == 0
