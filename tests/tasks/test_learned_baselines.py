"""What is reached without a network, by its definition."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tasks.baselines.frequent_tags import most_frequent_tags
from bakeoff.tasks.baselines.tfidf import counted
from bakeoff.tasks.kinds import question_answering
from bakeoff.tasks.kinds.classification import LabelledText
from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.reading.gold_answers import placed
from bakeoff.tasks.reading.questions import Question

LABELLED = LabelledText(1, ("ab cd",), "x")
TAGGED = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("XYZ")), min_size=1, max_size=9)


@given(st.lists(TAGGED, min_size=1, max_size=4), st.lists(st.sampled_from("abcd"), max_size=5))
def test_a_word_has_its_most_frequent_tag_or_that_of_all_words_and_on_a_tie_the_first_of_the_alphabet(train, words):
    every = [pair for sentence in train for pair in sentence]

    def most(tags):
        counts = Counter(tags)
        return min(tag for tag in counts if counts[tag] == max(counts.values()))

    expected = [most([tag for other, tag in every if other == word] or [tag for _, tag in every]) for word in words]
    sentences = [tuple(zip(*sentence, strict=True)) for sentence in train]
    assert most_frequent_tags(sentences, [words]) == [expected]


def test_answers_without_a_model_have_as_many_words_as_the_median_answer(monkeypatch):
    """One long answer among many does not change them."""
    context = "Ann ate one red apple, and then Bob slept for nine long hours of the night."
    answers = ["Ann", "Bob", "red apple", "slept for nine long hours of the night"]
    train = [Question(1, ("Who ate?", context), (placed(answer, None, context, "here"),)) for answer in answers]
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json"), False, 0.0)
    asked = []
    monkeypatch.setattr(question_answering, "overlapping_answer", lambda one, other, words: asked.append(words) or "x")
    for count in (1, 2, 3, 4):
        task.simplest(train[:count], train[:1])
    assert asked == [1, 1, 1, 2]
    lines = task.simplest_lines(train, train)
    assert [(line["label"], line["prediction"]) for line in lines] == [([answer], "x") for answer in answers]


def test_both_texts_of_a_pair_have_features_and_their_cosine_is_one():
    """The words of the second texts too, which no first text has."""
    pairs = [("old stone", "stone river"), ("city", "lemon tree"), ("old city", "old city"), ("stone", "lemon")]
    train = [LabelledText(line, pair, "x") for line, pair in enumerate(pairs)]
    for _, features in counted(train, likeness=True):
        table = features(train).toarray()
        count = (table.shape[1] - 1) // 3
        first, second = table[:, :count], table[:, count : 2 * count]
        np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1)
        np.testing.assert_allclose(np.linalg.norm(second, axis=1), 1)
        np.testing.assert_allclose(table[:, 2 * count : -1], first * second)
        np.testing.assert_allclose(table[:, -1], (first * second).sum(1))


def test_features_are_words_and_characters_with_those_behind_them():
    """Up to two words, up to three characters, in lower case."""
    names = {name: features([LabelledText(1, ("Ab cd",), "x")]) for name, features in counted([LABELLED])}
    shapes = {name: (table.shape[1], table.nnz) for name, table in names.items()}
    assert shapes == {"word 1-2-grams": (3, 3), "character 1-3-grams": (5 + 4 + 3, 5 + 4 + 3)}
