"""What examples contribute to metrics, against the metric computed anew without each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RegressionConfig, regression_scores
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tasks.kinds.tagging import TaggedSentence, Tagging, TaggingConfig
from bakeoff.tasks.registry import TASKS
from bakeoff.tasks.scores.jackknife import of_classes, of_pearson, of_spearman
from bakeoff.tasks.scores.label_scores import positive_scores, score
from bakeoff.tasks.scores.multilabel_scores import multilabel_scores
from bakeoff.tasks.scores.text_scores import text_scores
from bakeoff.tasks.task_config import Metric, TaskConfig


def pseudo_values(examples, metric):
    """The definition; `metric` scores a list of examples."""
    return centred(metric(examples), [metric(examples[:i] + examples[i + 1 :]) for i in range(len(examples))])


def centred(whole, without):
    """The jackknife's pseudo-values, moved to where their mean is the metric of all examples."""
    count = len(without)
    values = count * whole - (count - 1) * np.array(without)
    return values - values.mean() + whole


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "matthews"])
@pytest.mark.parametrize(("classes", "rows"), [(2, 12), (3, 40), (9, 25), (9, 8)])  # in the last, classes of one row
def test_contributions_are_jackknife_pseudo_values(metric, classes, rows):
    random = np.random.default_rng([classes, rows])
    labels = random.integers(classes, size=rows)
    predictions = np.where(random.random(rows) < 0.6, labels, random.integers(classes, size=rows))
    whole = score(labels.tolist(), predictions.tolist(), classes)[metric]
    without = [
        score(np.delete(labels, i).tolist(), np.delete(predictions, i).tolist(), classes)[metric] for i in range(rows)
    ]
    found = of_classes(labels, predictions, metric)
    assert found == pytest.approx(centred(whole, without), abs=1e-4)
    assert found.mean() == pytest.approx(whole)


@pytest.mark.parametrize("metric", ["macro_f1", "matthews"])
def test_contributions_predict_the_noise_of_the_test_set(metric):
    random = np.random.default_rng(0)
    seen, estimated = [], []
    for _ in range(200):
        labels = random.choice(3, p=[0.5, 0.3, 0.2], size=400)
        predictions = np.where(random.random(400) < 0.7, labels, random.integers(3, size=400))
        seen.append(score(labels.tolist(), predictions.tolist(), 3)[metric])
        estimated.append(np.sqrt(np.var(of_classes(labels, predictions, metric), ddof=1) / 400))
    assert np.mean(estimated) == pytest.approx(np.std(seen), rel=0.15)


def test_contributions_take_names_of_classes():
    assert of_classes(["a", "b", "a"], ["a", "a", "a"], "accuracy").tolist() == [1, 0, 1]
    assert len(of_classes(["a", "b", "a"], ["a", "a", "c"], "macro_f1")) == 3


NUMBERS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=2, max_size=12)


@given(NUMBERS)
@settings(max_examples=25, deadline=None)
def test_correlations_of_numbers_with_ties(pairs):
    for name, found in (("spearman", of_spearman), ("pearson", of_pearson)):
        expected = pseudo_values(pairs, lambda some, name=name: regression_scores(*zip(*some, strict=True))[name])
        assert found(*zip(*pairs, strict=True)) == pytest.approx(expected, abs=1e-4)


def test_correlations_of_large_numbers_that_lie_close_together():
    random = np.random.default_rng(0)
    x = 1e6 + random.normal(size=40)
    y = x + random.normal(size=40)
    pairs = list(zip(x, y, strict=True))
    for name, found in (("spearman", of_spearman), ("pearson", of_pearson)):
        expected = pseudo_values(pairs, lambda some, name=name: regression_scores(*zip(*some, strict=True))[name])
        assert found(x, y) == pytest.approx(expected, abs=1e-4)


def test_all_pairs_of_many_examples_are_looked_at_in_parts(monkeypatch):
    x, y = np.random.default_rng(1).integers(0, 9, (2, 100))
    at_once = of_spearman(x, y)
    monkeypatch.setattr("bakeoff.tasks.scores.jackknife.MOST_PAIRS", 700)
    assert of_spearman(x, y) == pytest.approx(at_once, abs=1e-9)


@pytest.mark.parametrize("metric", ["spearman", "pearson", "mean_absolute_error"])
def test_contributions_of_numbers_predict_the_noise_of_the_test_set(metric):
    random, config = np.random.default_rng(2), RegressionConfig(train="t.tsv", text_column="t", label_column="n")
    seen, estimated = [], []
    for _ in range(80):
        true = random.normal(size=200)
        found = true + random.normal(size=200)
        seen.append(regression_scores(true, found)[metric])
        lines = [{"label": one, "prediction": other} for one, other in zip(true, found, strict=True)]
        estimated.append(np.sqrt(np.var(config.contributions(lines, metric), ddof=1) / 200))
    assert np.mean(estimated) == pytest.approx(np.std(seen), rel=0.2)


TAGS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(TAGS, st.randoms(use_true_random=False)), min_size=2, max_size=9))
@settings(max_examples=25, deadline=None)
def test_contributions_of_sentences(drawn):
    tags = ["O", "B-X", "I-X", "B-Y"]
    task = Tagging(TaggingConfig(train="t.conll"), tags, [])
    pairs = [
        (TaggedSentence(0, ("w",) * len(true), tuple(true)), [random.choice([tag, *tags]) for tag in true])
        for true, random in drawn
    ]
    lines = [task.line(example, answer) for example, answer in pairs]
    for metric in ("f1", "precision", "recall", "accuracy"):
        expected = pseudo_values(pairs, lambda some, metric=metric: task.score(*zip(*some, strict=True))[metric])
        assert task.config.contributions(lines, metric) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", list(TASKS))
def test_every_kind_says_what_examples_contribute(kind):
    """Else comparisons can claim nothing of its tasks."""
    assert TASKS[kind].contributions is not TaskConfig.contributions


def test_metrics_without_a_name_are_called_by_their_key():
    assert RegressionConfig.described("mean_absolute_error") == Metric("mean absolute error", "")
    assert RegressionConfig.described("some_share") == Metric("some share", "%")
    assert TaskConfig.described("some_share") == Metric("some share", "%")


ROWS = st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sets(st.sampled_from("abc"))), min_size=2, max_size=8)


@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_rows_of_several_labels(rows):
    config = MultilabelConfig(train="t", text_column="t", label_column="l")
    names = dict.fromkeys("abc", 0.0)
    lines = [{"label": sorted(a), "prediction": sorted(b), "probabilities": names} for a, b in rows]

    def scored(some, metric):
        true, found = (np.array([[name in row[side] for name in "abc"] for row in some]) for side in (0, 1))
        return multilabel_scores(true, found.astype(np.float32), 0.5)[metric]

    for metric in ("micro_f1", "macro_f1", "exact"):
        expected = pseudo_values(rows, lambda some, metric=metric: scored(some, metric))
        assert config.contributions(lines, metric) == pytest.approx(expected, abs=1e-5)


PLACES = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=2)


@given(st.lists(PLACES, min_size=3, max_size=8))
@settings(max_examples=50, deadline=None)
def test_areas_under_the_curve_with_ties_and_labels_that_all_or_none_have(rows):
    config = MultilabelConfig(train="t", text_column="t", label_column="l")

    def scored(some):
        true = np.array([[has for has, _ in row] for row in some])
        return multilabel_scores(true, np.array([[score / 4 for _, score in row] for row in some], np.float32), 0.5)[
            "auc"
        ]

    lines = [
        {
            "label": [name for name, (has, _) in zip("ab", row, strict=True) if has],
            "prediction": [],
            "probabilities": {name: score / 4 for name, (_, score) in zip("ab", row, strict=True)},
        }
        for row in rows
    ]
    assert config.contributions(lines, "auc") == pytest.approx(pseudo_values(rows, scored), abs=1e-5)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("xyz")), min_size=2, max_size=12))
@settings(max_examples=25, deadline=None)
def test_the_scores_of_one_class(rows):
    config = ClassificationConfig(train="t", text_column="t", label_column="l", positive="x")
    lines = [{"label": a, "prediction": b, "probability": 1.0} for a, b in rows]

    def scored(some, metric):
        return positive_scores(["xyz".index(a) for a, _ in some], ["xyz".index(b) for _, b in some], 0)[metric]

    for metric in ("f1", "precision", "recall"):
        expected = pseudo_values(rows, lambda some, metric=metric: scored(some, metric))
        assert config.contributions(lines, metric) == pytest.approx(expected, abs=1e-5)


def test_answers_to_questions_count_each_for_itself():
    lines = [{"label": ["the cat"], "prediction": "Cat"}, {"label": ["a dog"], "prediction": "dog house"}]
    config = QuestionAnsweringConfig(train="t.json")
    assert config.contributions(lines, "exact").tolist() == [1, 0]
    assert config.contributions(lines, "f1").tolist() == pytest.approx([1, 2 / 3])


WRITTEN = ["the cat sat on the mat", "a dog ran over the hill", "the mat", "birds sing in the old tree today", "yes"]
REFERENCES = ["the cat sat on a mat", "a dog ran up the hill", "a mat", "birds sing in the tall tree", "yes"]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "rouge_1", "rouge_2", "rouge_l", "exact", "loss"])
def test_texts_that_are_written(metric):
    config = SequenceToSequenceConfig(train="t.tsv")
    lines = [
        {"label": right, "prediction": text, "loss": 1.5 * number, "tokens": len(right.split())}
        for number, (right, text) in enumerate(zip(REFERENCES, WRITTEN, strict=True))
    ]

    def scored(some):
        if metric == "loss":
            return sum(line["loss"] for line in some) / sum(line["tokens"] for line in some)
        return text_scores([line["label"] for line in some], [line["prediction"] for line in some])[metric]

    assert config.contributions(lines, metric) == pytest.approx(pseudo_values(lines, scored), abs=1e-5)
