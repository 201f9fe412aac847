"""Predictions made of given outputs: windows are joined, words tagged by one token, answers given or not."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig, TextWithLabels
from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RatedText, RegressionConfig
from bakeoff.tasks.predictions.answer_spans import Candidate, PredictedAnswer, gathered
from bakeoff.tasks.reading.questions import GoldAnswer, Question
from bakeoff.tasks.rows.answer_windows import AnswerWindow
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.tag_windows import tag_windows
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

ODDS = st.floats(-6, 6, width=32, allow_subnormal=False)  # which trainings of this process flush to zero
TEXTS = st.lists(st.lists(st.tuples(ODDS, ODDS), min_size=1, max_size=3), min_size=1, max_size=3)
"""Texts, each with some windows, each with two outputs."""
COLUMNS = {"train": "t.tsv", "text_column": "text", "label_column": "label"}


def windows_of(owners, targets=None):
    """Items of a row each; what the rows hold does not matter to a prediction."""
    encoded = EncodedRows([np.zeros(1, np.int64)] * len(owners), np.zeros(len(owners), np.int64), 0)
    return Items(encoded, np.arange(len(owners) + 1), np.array(owners), targets or [None] * len(owners))


def decoded(task, texts, outputs):
    """The predictions for texts, from a function that makes a window's output of its two numbers."""
    owners = [owner for owner, windows in enumerate(texts) for _ in windows]
    return task.decode([outputs(np.array(each, np.float32)) for own in texts for each in own], windows_of(owners))


@given(TEXTS)
def test_a_text_in_windows_has_the_mean_of_their_probabilities(texts):
    """Of probabilities, and not of log-odds or of log-probabilities, in which one sure window outweighs all others."""
    several = MultilabelConfig(**COLUMNS).restore(["x", "y"], "labels.json")
    expected = [np.mean([1 / (1 + np.exp(-np.array(each, np.float64))) for each in own], 0) for own in texts]
    np.testing.assert_allclose(decoded(several, texts, np.copy), expected, atol=1e-6)
    classes = ClassificationConfig(**COLUMNS).restore(["x", "y"], "labels.json")
    powers = [[np.exp(np.array(each, np.float64)) for each in own] for own in texts]
    expected = [np.mean([power / power.sum() for power in own], 0) for own in powers]
    found = decoded(classes, texts, lambda own: own - np.logaddexp.reduce(own))
    np.testing.assert_allclose([each.probabilities for each in found], expected, atol=1e-6)
    assert [each.class_index for each in found] == [int(each.probabilities.argmax()) for each in found]


@given(TEXTS)
def test_a_number_in_windows_is_their_mean_on_the_labels_scale(texts):
    task = RegressionConfig(**COLUMNS).restore({"mean": 3.0, "deviation": 0.5}, "labels.json")
    expected = [3 + 0.5 * np.mean([first for first, _ in own], dtype=np.float64) for own in texts]
    np.testing.assert_allclose(decoded(task, texts, lambda own: own[0]), expected, atol=1e-5)


def shown_by_the_readme(task, outputs, capsys):
    """What the last line of an ONNX export's README prints of its outputs."""
    given = {"np": np, "outputs": [np.array(outputs, np.float32)], "config": {"labels": task.labels}}
    exec(task.config.prints_outputs, given)
    return capsys.readouterr().out


def test_the_readme_of_an_onnx_export_prints_numbers_on_the_labels_scale(capsys):
    task = RegressionConfig(**COLUMNS).restore({"mean": 3.0, "deviation": 0.5}, "labels.json")
    assert shown_by_the_readme(task, [[2.0], [-1.0]], capsys) == "[4.  2.5]\n"


def test_the_readme_of_an_onnx_export_prints_the_probability_of_each_of_several_labels(capsys):
    task = MultilabelConfig(**COLUMNS).restore(["x", "y"], "labels.json")
    shown = shown_by_the_readme(task, [[0.0, 9.0], [-9.0, 0.0]], capsys)
    assert re.sub(r"(\.\d{3})\d+", r"\1", shown) == "[{'x': 0.5, 'y': 0.999}, {'x': 0.000, 'y': 0.5}]\n"


@pytest.mark.parametrize("name", ["bert-tiny", "gpt-tiny", "xlnet-tiny", "bart-tiny", "elmo-tiny"])
@pytest.mark.parametrize("length", [64, 12])
def test_a_word_is_tagged_by_its_first_token_or_where_a_model_reads_forwards_by_its_last(name, length):
    recipe = shrink(name)
    tokenizer = Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=262), ["plum saw"])  # nearly a token a letter
    sentence = ["saw", "plum", "a", "apple"] * 3
    (words,) = tokenizer.encode_words([sentence])
    assert (words.last - words.first).max() > 1
    forwards = recipe.model.causal and not recipe.reads_both_sides
    encoded, owners, targets = tag_windows([sentence], [None], {}, InputFormat(tokenizer, recipe, length))
    assert (len(owners) > 1) == (length == 12)
    tagged = []
    for row, target in zip(encoded.ids, targets, strict=True):
        tagged += target.words.tolist()
        places = (words.last if forwards else words.first)[target.words]
        assert row[target.positions].tolist() == words.ids[places].tolist()
        if len(target.positions) > 1:  # as far apart in the row as in the sentence, so that equal tokens are told apart
            assert np.array_equal(np.diff(target.positions), np.diff(places))
    assert sorted(tagged) == list(range(len(sentence)))


def test_the_score_of_an_answer_is_that_of_the_window_which_is_surest():
    question = Question(1, ("Who?", "Ann met Bob"))
    ends = np.array([0, 4, 8]), np.array([3, 7, 11])
    window = AnswerWindow(question, *ends, second=0, whole=0, target=None)
    for outputs in ([9, 1], [1, 9]):
        scores = [np.array([[0, 0], [each, each], [-9, -9], [-9, -9]], np.float32) for each in outputs]
        (found,) = gathered(scores, windows_of([0, 0], [window, window]), 1, 3)
        assert (found.candidates[0].text, found.candidates[0].score) == ("Ann", 18)
        assert [each.score for each in found.candidates[1:]] == [-18, -18]


ANSWERED = st.tuples(st.sampled_from(["a", "b b", ""]), st.sampled_from([["a"], ["b"], []]), st.integers(-3, 3))


@given(st.lists(ANSWERED, min_size=1, max_size=7), st.sampled_from(["f1", "exact"]))
def test_the_threshold_that_dev_settles_is_as_good_as_any(asked, metric):
    """What no answer scores where a question has none is lost by giving one."""
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json", metric=metric), True, 0.0)
    examples, answers = [], []
    for number, (text, right, none) in enumerate(asked):
        examples.append(Question(number, ("?", "a b b"), tuple(GoldAnswer(each, 0, 1) for each in right)))
        answers.append(PredictedAnswer((Candidate(text, 0, 1, 0.0),), none))
    found = task.resolve(examples, answers).score(examples, answers)[metric]
    every = [
        QuestionAnswering(task.config, True, threshold).score(examples, answers)[metric]
        for threshold in np.arange(-4, 4) + 0.5
    ]
    assert found == pytest.approx(max(every), abs=1e-6)


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=6).filter(lambda values: len({*values}) > 1))
def test_numbers_are_learned_with_a_mean_of_0_and_a_deviation_of_1(values):
    config = RegressionConfig(**COLUMNS)
    rows = [RatedText(line, ("",), value / 8) for line, value in enumerate(values)]
    task = config.learn(rows, "train")
    format = SimpleNamespace(encode=lambda *_: windows_of(range(len(rows))).encoded)
    scaled = np.array(task.encode(rows, format).targets)
    assert abs(scaled.mean()) < 1e-6
    assert abs(scaled.std() - 1) < 1e-6
    np.testing.assert_allclose(task.decode(list(scaled), windows_of(range(len(rows)))), np.array(values) / 8, atol=1e-3)


@settings(deadline=None)
@given(st.lists(st.frozensets(st.sampled_from("abc")), min_size=1, max_size=6), st.sampled_from([0.1, 0.4, 0.7, 0.9]))
def test_without_a_model_a_row_has_the_labels_of_half_of_train_whatever_the_threshold(names, threshold):
    rows = [TextWithLabels(line, ("",), own) for line, own in enumerate([*names, frozenset("abc")])]
    task = MultilabelConfig(**COLUMNS, threshold=threshold).learn(rows, "train")
    often = {label for label in "abc" if 2 * sum(label in each.names for each in rows) >= len(rows)}
    exact = np.mean([each.names == often for each in rows])
    assert task.simplest(rows, rows)["exact"] == pytest.approx(exact, abs=1e-6)
