"""What is said of the answer to a question: whether one is given, its probability, its scores by sort of question."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.predictions.answer_spans import Candidate, PredictedAnswer
from bakeoff.tasks.reading.gold_answers import GoldAnswer, placed
from bakeoff.tasks.reading.questions import Question

CONFIG = QuestionAnsweringConfig(train="t.json")
CONTEXT = "Ann met Bob and Bea"
NAMES = ("Ann", "Bob", "Bea")
SCORES = st.lists(st.integers(-8, 8), max_size=3).map(lambda scores: sorted(scores, reverse=True))


def answer_of(scores, none):
    places = [(CONTEXT.index(name), CONTEXT.index(name) + 3) for name in NAMES]
    candidates = zip(NAMES, places, scores, strict=False)
    return PredictedAnswer(tuple(Candidate(name, *place, float(own)) for name, place, own in candidates), float(none))


@given(SCORES, st.integers(-9, 9), st.booleans(), st.sampled_from([-3.5, 0.5, 2.5]))
def test_the_probability_is_that_of_the_answer_or_of_none(scores, none, unanswerable, threshold):
    """Of the candidates, and of none only where questions may have no answer, together 1."""
    task, found = QuestionAnswering(CONFIG, unanswerable, threshold), answer_of(scores, none)
    asked = Question(7, ("Who?", CONTEXT), (GoldAnswer("Ann", 0, 3),), "q1")
    powers = [math.exp(score) for score in scores]
    total = sum(powers) + (math.exp(none) if unanswerable else 0)
    given = bool(scores) and not (unanswerable and none - scores[0] > threshold)
    probability = powers[0] / total if given else math.exp(none) / total if unanswerable else 1
    line, said = task.line(asked, found), task.as_record(asked, found)
    assert line["prediction"] == said["answer"] == ("Ann" if given else "")
    assert (said["start"], said["end"]) == ((0, 3) if given else (None, None))
    assert line["probability"] == said["probability"] == pytest.approx(probability, abs=1e-6)
    assert [each["answer"] for each in said["n_best"]] == list(NAMES[: len(scores)])
    expected = [power / total for power in powers]
    assert [each["probability"] for each in said["n_best"]] == pytest.approx(expected, abs=1e-6)
    for each in (line, said):
        assert ("no_answer" in each) == unanswerable
        assert each.get("no_answer", 0) == pytest.approx(math.exp(none) / total if unanswerable else 0, abs=1e-6)
    assert (line["id"], said["id"], line["label"]) == ("q1", "q1", ["Ann"])
    unnamed = Question(7, ("Who?", CONTEXT), ())
    assert task.line(unnamed, found)["id"] == "7"
    assert "id" not in task.as_record(unnamed, found)
    assert task.shown(asked, found) == (line["prediction"], f"{line['probability']:.4f}", "Who?")


def test_questions_with_and_without_an_answer_have_scores_of_their_own():
    task = QuestionAnswering(CONFIG, True, 0.0)
    rows = [(("Ann",), 1), (("Ann",), -1), ((), -1), ((), 1), (("Bob and Ann",), -1)]
    examples = [
        Question(n, ("Who?", CONTEXT), tuple(GoldAnswer(text, 0, 3) for text in right))
        for n, (right, _) in enumerate(rows)
    ]
    found = task.score(examples, [answer_of([0], none) for _, none in rows])
    f1 = {True: [0, 1, 2 * 1 / 4], False: [0, 1]}
    exact = {True: [0, 1, 0], False: [0, 1]}
    expected = {}
    for name, values in (("exact", exact), ("f1", f1)):
        expected[name] = np.mean(values[True] + values[False])
        expected[f"has_answer_{name}"], expected[f"no_answer_{name}"] = np.mean(values[True]), np.mean(values[False])
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("train", ["answers", "none"])
@pytest.mark.parametrize("metric", ["f1", "exact"])
def test_train_decides_whether_answers_without_a_model_are_given(train, metric):
    """By the metric of the task; test has as many of the others."""
    has = Question(1, ("Who met Bob?", "Ann met Bob"), (placed("Ann", 0, "Ann met Bob", "here"),))
    lacks = Question(2, ("Who met Bob?", "Ann met Bob"), ())
    most, few = (has, lacks) if train == "answers" else (lacks, has)
    task = QuestionAnswering(CONFIG.model_copy(update={"metric": metric}), True, 0.0)
    found = task.simplest([most, most, few], [few, few, few, most])
    assert found[metric] == 0.25
    always = QuestionAnswering(CONFIG, False, 0.0)
    assert always.simplest([lacks, lacks, has], [has])["exact"] == 1
