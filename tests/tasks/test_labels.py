"""Classes and labels: one class's own scores, weights of classes, smoothed targets, and several labels for a text."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from keyword_task import KEYWORDS, sentence, write_jsonl
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score
from sklearn.utils.class_weight import compute_class_weight

from bakeoff.errors import UserError
from bakeoff.tasks.data import require_known
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig, LabelledText
from bakeoff.tasks.kinds.multilabel import MultilabelConfig, TextWithLabels
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.predict import predict
from bakeoff.tasks.rows.inputs import EncodedRows
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.label_scores import positive_scores
from bakeoff.tasks.scores.multilabel_scores import multilabel_scores

QUIET = {"device": "cpu", "progress": False}
LABELS = ["no", "no", "yes", "no", "perhaps", "no", "yes", "no"]
FILES = {"train": "train.tsv", "text_column": "t", "label_column": "l"}


def items_of(targets):
    rows = EncodedRows([np.arange(3)] * len(targets), np.full(len(targets), 3), 0)
    return Items.one_each(rows, targets)


def examples():
    return [LabelledText(row, (f"text {row}",), label) for row, label in enumerate(LABELS)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30), st.integers(0, 2))
def test_the_scores_of_one_class_are_those_of_scikit_learn(pairs, positive):
    labels, predictions = (list(side) for side in zip(*pairs, strict=True))
    found = positive_scores(labels, predictions, positive)
    options = {"labels": [positive], "average": "micro", "zero_division": 0}
    expected = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
    assert found == pytest.approx({name: score(labels, predictions, **options) for name, score in expected.items()})


def test_the_f1_of_a_named_class_is_reported_and_can_decide():
    task = ClassificationConfig(**FILES, positive="yes", metric="f1").learn(examples(), "train.tsv")
    answers = task.decode([np.log([0.1, 0.2, 0.7], dtype=np.float32)] * 8, items_of([0] * 8))
    found = task.score(examples(), answers)
    assert found["f1"] == pytest.approx(2 * 0.25 / 1.25)
    assert found["recall"] == 1
    assert task.metric == "f1"
    assert task.simplest(examples(), examples())["f1"] == 0
    with pytest.raises(UserError, match="f1 is that of one class; name it with positive"):
        ClassificationConfig.parse({**FILES, "metric": "f1"}, "finetune")
    with pytest.raises(UserError, match=r"train.tsv: there is no class 'Yes'; there are no, perhaps, yes"):
        ClassificationConfig(**FILES, positive="Yes").learn(examples(), "train.tsv")


@pytest.mark.parametrize("name", [1, "1", 1.0])
def test_a_class_may_be_named_by_its_number(name):
    weights = {name: 3}
    task = ClassificationConfig(
        train="t.tsv", text_column="t", label_column="l", metric="f1", positive=name, class_weights=weights
    )
    assert (task.positive, task.class_weights) == ("1", {"1": 3.0})


def test_balanced_weights_are_those_of_scikit_learn():
    task = ClassificationConfig(**FILES, class_weights="balanced").learn(examples(), "train.tsv")
    expected = compute_class_weight("balanced", classes=np.array(["no", "perhaps", "yes"]), y=np.array(LABELS))
    assert task.weights.tolist() == pytest.approx(expected.tolist())
    named = ClassificationConfig(**FILES, class_weights={"yes": 3.0}).learn(examples(), "train.tsv")
    assert named.weights.tolist() == [1, 1, 3]
    with pytest.raises(UserError, match="there is no class 'yess'"):
        ClassificationConfig(**FILES, class_weights={"yess": 3.0}).learn(examples(), "train.tsv")


def smoothed(log_probabilities, label, share):
    """The cross-entropy with a target of 1 - share + share / C for the label and share / C for the others."""
    count = len(log_probabilities)
    target = [share / count + (1 - share) * (place == label) for place in range(count)]
    return -sum(own * value for own, value in zip(target, log_probabilities.tolist(), strict=True))


def test_losses_of_weights_and_of_smoothed_targets():
    scores = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    targets = [["no", "perhaps", "yes"].index(label) for label in LABELS]
    chosen = np.array([1, 2, 4, 6])
    of_chosen = [targets[item] for item in chosen]
    config = ClassificationConfig(**FILES, class_weights={"yes": 3.0, "no": 0.5})
    task = config.learn(examples(), "train.tsv")
    task.weights = task.weights.double()
    own = [{0: 0.5, 1: 1.0, 2: 3.0}[target] for target in of_chosen]
    each = F.cross_entropy(scores[:4], torch.tensor(of_chosen), reduction="none").tolist()
    expected = sum(weight * loss for weight, loss in zip(own, each, strict=True)) / sum(own)
    assert task.loss(scores[:4], items_of(targets), chosen).item() == pytest.approx(expected)

    logs = scores[:4].log_softmax(-1)
    expected = np.mean([smoothed(row, label, 0.3) for row, label in zip(logs, of_chosen, strict=True)])
    plain = ClassificationConfig(**FILES, label_smoothing=0.3).learn(examples(), "train.tsv")
    assert plain.loss(scores[:4], items_of(targets), chosen).item() == pytest.approx(expected)


def test_smoothed_targets_of_tags_and_choices(recipe, corpus):
    from bakeoff.tasks.rows.inputs import InputFormat
    from bakeoff.tokenizer.tokenizer import Tokenizer

    format = InputFormat(Tokenizer.load(corpus), recipe, 32)
    sentences = [TaggedSentence(1, ("apple", "saw"), ("A", "B")), TaggedSentence(2, ("plum",), ("C",))]
    tagging = TaggingConfig(train="t", label_smoothing=0.3).learn(sentences, "t")
    scores = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logs = scores.log_softmax(-1)
    expected = np.mean([smoothed(logs[0, 1], 0, 0.3), smoothed(logs[0, 2], 1, 0.3), smoothed(logs[1, 1], 2, 0.3)])
    found = tagging.loss(scores, tagging.encode(sentences, format), np.array([0, 1]))
    assert found.item() == pytest.approx(expected)

    files = {"train": "t", "text_column": "t", "choices": "c", "label_column": "l"}
    config = ChoiceConfig(**files, label_smoothing=0.3)
    questions = [config.example(["apple", "saw", "plum"]), config.example(["apple", "saw", "plum", "town"])]
    questions = [type(each)(0, each.texts, answer) for each, answer in zip(questions, (1, 0), strict=True)]
    choice = config.learn(questions, "t")
    scores = scores.flatten()[:5, None]
    expected = np.mean([smoothed(scores[:2, 0].log_softmax(0), 1, 0.3), smoothed(scores[2:, 0].log_softmax(0), 0, 0.3)])
    assert choice.loss(scores, choice.encode(questions, format), np.array([0, 1])).item() == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 9))
def test_the_scores_of_several_labels_are_those_of_scikit_learn(labels, rows, seed):
    random = np.random.default_rng(seed)
    true, probabilities = random.random((rows, labels)) < 0.4, random.random((rows, labels)).astype(np.float32)
    found = multilabel_scores(true, probabilities, 0.5)
    predicted = probabilities >= 0.5
    assert found["micro_f1"] == pytest.approx(f1_score(true.ravel(), predicted.ravel(), zero_division=0))
    own = [f1_score(true[:, place], predicted[:, place], zero_division=0) for place in range(labels)]
    assert found["macro_f1"] == pytest.approx(np.mean(own), abs=1e-6)
    assert found["exact"] == pytest.approx(sum((a == b).all() for a, b in zip(true, predicted, strict=True)) / rows)
    both = [place for place in range(labels) if 0 < true[:, place].sum() < rows]
    areas = [roc_auc_score(true[:, place], probabilities[:, place]) for place in both]
    assert found["auc"] == pytest.approx(np.mean(areas) if areas else 0.5, abs=1e-6)


def rows_of(seed, count):
    """Texts with a word of each of their labels."""
    import random

    draw = random.Random(seed)
    made = []
    for _ in range(count):
        labels = [name for name in sorted(KEYWORDS) if draw.random() < 0.5]
        words = [sentence(draw, None, 1, 3), *(draw.choice(KEYWORDS[name]) for name in labels)]
        made.append({"text": " ".join(words), "labels": labels})
    return made


def test_several_labels_are_learned_from_files_as_people_have_them(recipe, corpus, tmp_path):
    paths = {}
    for seed, (name, count) in enumerate({"train": 300, "dev": 60, "test": 60}.items()):
        paths[name] = write_jsonl(tmp_path / f"{name}.jsonl", rows_of(seed, count))
    task = MultilabelConfig(**paths, text_column="text", label_column="labels")
    config = FinetuneConfig(learning_rate=[3e-3], epochs=12, least_steps=0, evaluations=4, pooling="max")
    result = finetune(recipe, task, tmp_path / "run", config=config, tokenizer=corpus, **QUIET)
    assert result.classes == ["fruit", "place", "tool"]
    assert result.scores["test"]["micro_f1"] > 0.9 > result.simplest["micro_f1"]
    lines = FinetunedRun.open(result.path).predictions()
    right = np.mean([line["label"] == line["prediction"] for line in lines])
    assert result.scores["test"]["exact"] == pytest.approx(right)
    (found,) = predict(result.path, ["baran saw dosel apple"])
    assert found["labels"] == ["fruit", "tool"]
    assert set(found["probabilities"]) == {"fruit", "place", "tool"}
    assert evaluate(result.path, data=paths["test"], device="cpu")["scores"] == pytest.approx(result.scores["test"])
    rows = [{**each, "labels": [*each["labels"], "metal"]} if n < 3 else each for n, each in enumerate(rows_of(2, 60))]
    other = evaluate(result.path, data=write_jsonl(tmp_path / "other.jsonl", rows), device="cpu")
    assert (other["labels"]["metal"]["count"], other["labels"]["metal"]["recall"]) == (3, 0)
    assert other["scores"]["exact"] == pytest.approx(
        right - np.mean([line["label"] == line["prediction"] for line in lines[:3]]) / 20
    )
    assert any("metal (3)" in note for note in other["notes"])


def test_the_forms_that_labels_have_in_files(tmp_path):
    rows = [("a text", ["fruit", "tool"]), ("another", []), ("a third", ["tool"])]
    (tmp_path / "list.jsonl").write_text("".join(json.dumps({"t": t, "l": own}) + "\n" for t, own in rows))
    (tmp_path / "joined.tsv").write_text("t\tl\n" + "".join(f"{t}\t{' , '.join(own)}\n" for t, own in rows))
    cells = "".join(f"{t}\t{int('fruit' in own)}\t{'tool' in own}\n" for t, own in rows)
    (tmp_path / "columns.tsv").write_text("t\tfruit\ttool\n" + cells)
    expected = [frozenset(own) for _, own in rows]
    for name, column in (("list.jsonl", "l"), ("joined.tsv", "l"), ("columns.tsv", ["fruit", "tool"])):
        config = MultilabelConfig(train=tmp_path / name, text_column="t", label_column=column)
        assert [each.names for each in config.read(config.train)] == expected, name
    (tmp_path / "odd.tsv").write_text("t\tfruit\ttool\nx\t1\tmaybe\n")
    config = MultilabelConfig(train=tmp_path / "odd.tsv", text_column="t", label_column=["fruit", "tool"])
    with pytest.raises(UserError, match=r"odd.tsv:2: 'maybe' says neither 1 nor 0 \(column 'tool'\)"):
        list(config.read(config.train))


def test_labels_of_columns_are_known_though_no_row_has_them():
    config = MultilabelConfig(train="t.tsv", text_column="t", label_column=["x", "rare"])
    task = config.learn([TextWithLabels(2, ("a",), frozenset({"x"}))], "t.tsv")
    assert task.classes == ["rare", "x"]
    assert task.notes == ["no row of train has rare, so that it cannot be learned"]


def test_lines_have_probabilities_that_no_rounding_makes_equal():
    """Of them the area under the curve is computed again, whose ties count half."""
    task = MultilabelConfig(train="t.tsv", text_column="t", label_column="l").restore(["x", "y"], "labels.json")
    near = [np.array([value, 1 - value], np.float32) for value in (1e-7, 1.1e-7, 0.3, 0.3 + 6e-8)]
    lines = [task.line(TextWithLabels(1, ("a",), frozenset()), each) for each in near]
    kept = [np.float32(line["probabilities"]["x"]) for line in lines]
    assert kept == [each[0] for each in near]
    assert len({*kept}) == 4


def test_counting_words_for_a_single_label():
    rows = [
        TextWithLabels(n, (f"word{n} {'bad' if n % 3 == 0 else 'good'}",), frozenset({"toxic"} if n % 3 == 0 else ()))
        for n in range(40)
    ]
    task = MultilabelConfig(train="t.tsv", text_column="t", label_column=["toxic"]).learn(rows, "t.tsv")
    scores = [task.score(rows, each.predict(rows)) for each in task.baselines(rows)]
    assert max(each["auc"] for each in scores) == 1
    assert max(each["micro_f1"] for each in scores) == 1


def test_what_several_labels_refuse():
    config = MultilabelConfig(train="t.tsv", text_column="t", label_column="l")
    with pytest.raises(UserError, match=r"t.tsv: no row has a label"):
        config.learn([TextWithLabels(2, ("a",), frozenset())], "t.tsv")
    task = config.learn([TextWithLabels(2, ("a",), frozenset({"x"}))], "t.tsv")
    with pytest.raises(UserError, match=r"dev.tsv: none of its labels \(y\) occurs in t.tsv, which has x; mend them"):
        require_known(task, [TextWithLabels(7, ("a",), frozenset({"y"}))], Path("dev.tsv"), "t.tsv")


SPELLINGS = ["café", "cafe\u0301", "caf\u00e9\u00a0", "  cafe\u0301 "]
"""One label as files spell it: composed or not, with spaces and a non-breaking one around it."""


def test_a_label_is_one_class_however_its_letters_are_coded(tmp_path):
    rows = [*SPELLINGS, "Cafe", "très bon", "tre\u0300s\u00a0 bon"]
    (tmp_path / "a.tsv").write_text("te\u0301xt\tlabel\n" + "".join(f"text {n}\t{row}\n" for n, row in enumerate(rows)))
    config = ClassificationConfig.parse(
        {
            "train": tmp_path / "a.tsv",
            "text_column": "téxt",
            "label_column": "label",
            "positive": SPELLINGS[1],
            "class_weights": {SPELLINGS[2]: 2},
            "label_names": {"Cafe\u00a0": "e\u0301"},
        },
        "options",
    )
    task = config.learn(list(config.read(config.train)), "a.tsv")
    assert (task.classes, config.positive, task.weights.tolist()) == (
        ["café", "très bon", "é"],
        "café",
        [2, 1, 1],
    )
    assert config.restore(["cafe\u0301", "x"], "labels.json").classes == ["café", "x"]


@pytest.mark.parametrize("key", ["class_weights", "label_names"])
def test_a_label_that_is_named_twice_is_refused(key):
    with pytest.raises(UserError, match=f"options: {key}: .*'café' names two labels; keep one"):
        ClassificationConfig.parse({**FILES, key: {"café": 1, "cafe\u0301": 2}}, "options")


@pytest.mark.parametrize("kind", ["classification", "multilabel", "tagging"])
def test_classes_of_a_run_differ_by_more_than_the_coding_of_their_letters(kind):
    config = {"classification": ClassificationConfig(**FILES), "multilabel": MultilabelConfig(**FILES)}
    names = ["café", "b", "cafe\u0301"]
    with pytest.raises(UserError, match=r"labels.json: .*'café' names two labels"):
        config.get(kind, TaggingConfig(train="t")).restore(
            {"tags": names, "moves": []} if kind == "tagging" else names, "labels.json"
        )


def test_several_labels_of_a_row_are_coded_alike(tmp_path):
    rows = [[spelling, 1.0, None, True, ""] for spelling in SPELLINGS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"t": "text", "l": row}) + "\n" for row in rows))
    (tmp_path / "a.tsv").write_text("t\tl\n" + "".join(f"text\t{row},1 , true,,\n" for row in SPELLINGS))
    (tmp_path / "b.tsv").write_text("t\tcafe\u0301\t1\ttrue\ntext\t1\t1\t1\n")
    (tmp_path / "d.jsonl").write_text(
        "".join(f'{{"t": "text", "l": {cell}}}\n' for cell in ("1.0", "1", '"1"', "[1.0]"))
    )
    single = MultilabelConfig(train=tmp_path / "d.jsonl", text_column="t", label_column="l")
    assert {each.names for each in single.read(single.train)} == {frozenset({"1"})}
    (tmp_path / "d.jsonl").write_text("".join(f'{{"t": "text", "l": {cell}}}\n' for cell in ("true", "[true]")))
    assert {each.names for each in single.read(single.train)} == {frozenset({"true"})}
    for name, column in (("a.jsonl", "l"), ("a.tsv", "l"), ("b.tsv", ["café", "1", "true"])):
        config = MultilabelConfig(train=tmp_path / name, text_column="t", label_column=column)
        found = list(config.read(config.train))
        assert {each.names for each in found} == {frozenset({"café", "1", "true"})}, name
        assert config.learn(found, name).classes == ["1", "café", "true"]
    for cell, kind in (('[["x"]]', "list"), ('{"x": 1, "y": 0}', "dict")):
        (tmp_path / "c.jsonl").write_text(f'{{"t": "text", "l": {cell}}}\n')
        config = MultilabelConfig(train=tmp_path / "c.jsonl", text_column="t", label_column="l")
        with pytest.raises(UserError, match=rf"c\.jsonl:1: column 'l' holds {kind} instead of a label"):
            list(config.read(config.train))


@pytest.mark.parametrize("label", SPELLINGS)
def test_a_choice_is_known_by_its_text_however_it_is_coded(tmp_path, label):
    (tmp_path / "a.jsonl").write_text(json.dumps({"t": "It is", "c": ["tea", "cafe\u0301"], "l": label}) + "\n")
    config = ChoiceConfig(train=tmp_path / "a.jsonl", text_column="t", choices="c", label_column="l")
    assert [each.answer for each in config.read(config.train)] == [1]
    (tmp_path / "b.tsv").write_text(f"t\ttea\tcafe\u0301\tl\nIt is\tred\tblack\t{label}\n")
    config = ChoiceConfig(train=tmp_path / "b.tsv", text_column="t", choices=["tea", "café"], label_column="l")
    assert [each.answer for each in config.read(config.train)] == [1]


def test_tags_are_coded_alike(tmp_path):
    (tmp_path / "a.conll").write_text("".join(f"word\tB-{name.lstrip()}\n\n" for name in SPELLINGS))
    rows = [{"t": ["word"], "l": [f" B-{name.lstrip()}"]} for name in SPELLINGS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spans = [{"t": "word", "s": [{"start": 0, "end": 4, "label": name}]} for name in SPELLINGS]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in spans))
    for name, columns in (
        ("a.conll", {}),
        ("a.jsonl", {"text_column": "t", "label_column": "l"}),
        ("b.jsonl", {"text_column": "t", "spans_column": "s"}),
    ):
        config = TaggingConfig(train=tmp_path / name, **columns)
        assert {each.tags for each in config.read(config.train)} == {("B-café",)}, name


@pytest.mark.parametrize(("given", "place"), [("A", 0), ("c", 2), ("1", 1), (2, 2), ("plum", 2), ("saw", 1)])
def test_a_choice_is_told_by_its_letter_its_place_or_its_text(given, place, tmp_path):
    path = write_jsonl(tmp_path / "t.jsonl", [{"t": "x", "c": ["apple", "saw", "plum"], "l": given}])
    config = ChoiceConfig(train=path, text_column="t", choices="c", label_column="l")
    assert [each.answer for each in config.read(path)] == [place]
