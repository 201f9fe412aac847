"""Scores of texts against what sacrebleu and Google's rouge_score say, recorded, and against definitions."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from bakeoff.tasks.scores.text_scores import chrf_sums, longest_common, rouge, text_scores

REFERENCES = [
    "The cat sat on the mat, didn't it?",
    "A man in a red shirt rides a bike.",
    "Two dogs play in the snow.",
    "It is 3.5 metres long - really.",
]
TEXTS = [
    "The cat is on the mat, isn't it?",
    "A man in a shirt rides a red bike.",
    "Dogs play in snow",
    "It is 3.5 meters long.",
]
# rouge_score 0.1.2 without its stemmer: rouge1, rouge2 and rougeL of each pair
ROUGE = [
    [0.7777777778, 0.5, 0.7777777778],
    [1.0, 0.75, 0.8888888889],
    [0.8, 0.5, 0.8],
    [0.7692307692, 0.5454545455, 0.7692307692],
]


def test_scores_are_those_of_sacrebleu_and_rouge_score():
    found = text_scores(REFERENCES, TEXTS)
    assert found["bleu"] == pytest.approx(0.2969830085, abs=1e-7)  # nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp
    assert found["chrf"] == pytest.approx(0.5626412890, abs=1e-7)  # nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no
    means = [sum(column) / len(ROUGE) for column in zip(*ROUGE, strict=True)]
    assert [found[name] for name in ("rouge_1", "rouge_2", "rouge_l")] == pytest.approx(means, abs=1e-6)
    assert found["exact"] == 0


def test_the_reference_has_all_scores_and_nothing_has_none():
    perfect = text_scores(REFERENCES, REFERENCES)
    assert set(perfect.values()) == {1.0}
    assert set(text_scores(REFERENCES, [""] * len(REFERENCES)).values()) == {0.0}
    half = text_scores(REFERENCES, [*REFERENCES[:2], "", ""])
    assert half["exact"] == 0.5
    assert half["rouge_1"] == pytest.approx(0.5)


def test_words_of_other_scripts_are_words():
    assert rouge(["Straßen über Zürich"], ["straßen über Basel"])["rouge_1"] == pytest.approx(2 / 3)
    assert rouge(["我爱北京"], ["我爱上海"])["rouge_l"] == 0.5
    assert text_scores(["我爱北京天安门"], ["我爱北京故宫"], "zh")["bleu"] > 0.3
    assert text_scores(["我爱北京天安门"], ["我爱北京故宫"], "none")["bleu"] == 0


@given(st.lists(st.tuples(*[st.text("ab \t中", max_size=9)] * 2), min_size=1, max_size=5))
def test_sums_of_chrf_give_what_sacrebleu_gives(pairs):
    references, texts = zip(*pairs, strict=True)
    own, value = chrf_sums(references, texts)
    assert own.shape == (len(pairs), 18)
    assert value(own.sum(0)) == pytest.approx(CHRF().corpus_score(texts, [references]).score / 100, abs=1e-9)
    each = [CHRF().corpus_score([text], [[right]]).score / 100 for right, text in pairs]
    assert value(own) == pytest.approx(each, abs=1e-9)


@given(st.lists(st.sampled_from("abcd"), max_size=9), st.lists(st.sampled_from("abcd"), max_size=9))
def test_the_longest_common_subsequence_is_that_of_its_definition(first, second):
    @cache
    def common(i, j):
        if i == len(first) or j == len(second):
            return 0
        if first[i] == second[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    assert longest_common(first, second) == common(0, 0)


def test_rouge_is_the_mean_over_texts_however_many_have_one_reference():
    scores = rouge(["one two", "one two", "three four"], ["one two", "five", "three six"])
    assert scores["rouge_1"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert scores["rouge_l"] == pytest.approx((1 + 0 + 0.5) / 3)


def test_words_with_underscores_are_the_words_between_them():
    assert rouge(["snake_case_name"], ["snake case name"])["rouge_2"] == 1.0
