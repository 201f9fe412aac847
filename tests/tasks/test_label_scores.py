"""Scores of each label, against scikit-learn and, for spans, against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig, LabelledText, PredictedClass
from bakeoff.tasks.kinds.multilabel import Multilabel, MultilabelConfig, TextWithLabels
from bakeoff.tasks.kinds.tagging import TaggedSentence, Tagging, TaggingConfig

CLASSES = ["a", "b", "c"]


def triples(found):
    return {name: (each.precision, each.recall, each.f1, each.count) for name, each in found.items()}


def expected(true, predicted, names):
    sides = precision_recall_fscore_support(true, predicted, labels=range(len(names)), zero_division=0)
    return {name: pytest.approx(own, abs=1e-6) for name, *own in zip(names, *sides, strict=True)}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_classes(pairs):
    config = ClassificationConfig(train="t.tsv", text_column="text", label_column="label")
    task = Classification(config, CLASSES)
    examples = [LabelledText(line, ("x",), CLASSES[label]) for line, (label, _) in enumerate(pairs)]
    answers = [PredictedClass(place, np.ones(3, np.float32)) for _, place in pairs]
    found = triples(task.score_labels(examples, answers))
    assert found == expected([label for label, _ in pairs], [place for _, place in pairs], CLASSES)


@given(
    st.lists(
        st.tuples(st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3)),
        min_size=1,
        max_size=9,
    )
)
@settings(max_examples=30, deadline=None)
def test_several_labels(rows):
    task = Multilabel(MultilabelConfig(train="t.tsv", text_column="text", label_column="label", threshold=0.3), CLASSES)
    true, given_ = (np.array(side) for side in zip(*rows, strict=True))
    names = [frozenset(name for name, has in zip(CLASSES, row, strict=True) if has) for row in true]
    examples = [TextWithLabels(line, ("x",), own) for line, own in enumerate(names)]
    answers = [np.where(row, 0.3, 0.29).astype(np.float32) for row in given_]
    answers = [np.where(row, np.float32(0.31), own) for row, own in zip(given_, answers, strict=True)]
    assert triples(task.score_labels(examples, answers)) == expected(true, given_, CLASSES)


def test_a_probability_that_equals_the_threshold_reaches_it_everywhere():
    """In answers, in scores and in the scores of each label."""
    task = Multilabel(MultilabelConfig(train="t.tsv", text_column="text", label_column="label", threshold=0.5), CLASSES)
    example = TextWithLabels(1, ("x",), frozenset("a"))
    answer = np.array([0.5, np.nextafter(np.float32(0.5), np.float32(0)), 0.1], np.float32)
    assert task.given(answer) == ["a"]
    assert task.score([example], [answer])["exact"] == task.score([example], [answer])["micro_f1"] == 1.0
    assert triples(task.score_labels([example], [answer]))["a"] == (1.0, 1.0, 1.0, 1)
    assert task.line(example, answer)["prediction"] == ["a"]


def test_types_of_spans_and_tags():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "I-LOC"], ["B-ORG"]]
    found = [["B-PER", "O", "O", "B-LOC"], ["O", "B-LOC", "I-LOC"], ["B-PER"]]
    examples = [TaggedSentence(line, tuple("w" * len(tags)), tuple(tags)) for line, tags in enumerate(true)]
    tags = sorted({tag for row in true for tag in row})
    scores = triples(Tagging(TaggingConfig(train="t.conll"), tags, []).score_labels(examples, found))
    assert scores == {"LOC": (1.0, 1.0, 1.0, 2), "ORG": (0.0, 0.0, 0.0, 1), "PER": (0.0, 0.0, 0.0, 1)}
    words = [TaggedSentence(0, ("w", "w", "w"), ("N", "V", "N"))]
    scores = triples(Tagging(TaggingConfig(train="t.conll"), ["N", "V"], []).score_labels(words, [["N", "N", "N"]]))
    assert scores == {"N": (pytest.approx(2 / 3), 1.0, pytest.approx(0.8), 2), "V": (0.0, 0.0, 0.0, 1)}


def test_they_stand_in_results_and_in_evaluations(fitted, files):
    own = {name: each.model_dump() for name, each in fitted.labels.items()}
    assert list(own) == fitted.classes
    assert sum(each["count"] for each in own.values()) == fitted.rows["test"]
    assert evaluate(fitted.path, data=files / "test.tsv", device="cpu")["labels"] == own
