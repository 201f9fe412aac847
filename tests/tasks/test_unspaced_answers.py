"""Scores of answers in Chinese against the rules of CMRC 2018's official script, written from its definition."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.predictions.answer_spans import Candidate, PredictedAnswer
from bakeoff.tasks.reading.gold_answers import GoldAnswer
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.scores.answer_scores import compare
from bakeoff.tasks.scores.unspaced_answers import compare_unspaced, comparison, unspaced_words

SIGNS = [*"-:_*^/\\~`+=", *"，。：？！“”；’《》"]
SIGNS += ["·", "、", "「", "」", "（", "）", "－", "～", "『", "』"]


def segments(text):
    """Character by character, as `mixed_segmentation(text, rm_punc=True)`; other scripts are parted at spaces."""
    found, run = [], ""
    for character in text.lower().strip():
        if character in SIGNS:
            continue
        if re.search("[\u4e00-\u9fa5]", character):
            found += [*run.split(), character]
            run = ""
        else:
            run += character
    return found + run.split()


def official(right, found):
    """The best of `calc_em_score` and of `calc_f1_score`, whose overlap is looked for run by run."""

    def bare(text):
        return "".join(character for character in text.lower().strip() if character not in SIGNS)

    def f1(text):
        wanted, given = segments(text), segments(found)
        runs = {
            tuple(wanted[begin:end]) for begin in range(len(wanted)) for end in range(begin + 1, len(wanted) + 1)
        } & {tuple(given[begin:end]) for begin in range(len(given)) for end in range(begin + 1, len(given) + 1)}
        if not runs:
            return 0.0
        common = max(map(len, runs))
        precision, recall = common / len(given), common / len(wanted)
        return 2 * precision * recall / (precision + recall)

    return max(float(bare(text) == bare(found)) for text in right), max(map(f1, right))


ANSWERS = st.text("中文字一 aB1·。-", max_size=9)
FILLED = ANSWERS.filter(lambda text: segments(text))


@given(st.lists(FILLED, min_size=1, max_size=3), ANSWERS)
def test_exact_and_f1_are_those_of_the_official_script(right, found):
    assert compare_unspaced(right, found) == pytest.approx(official(right, found))


def test_ideographs_stand_alone_and_other_scripts_in_words():
    assert unspaced_words("《红楼梦》 (Dream of the Red Chamber)，1,791.5年") == [
        *"红楼梦",
        "(",
        *["dream", "of", "the", "red", "chamber", ")", "1,791.5", "年"],
    ]
    # The longest common run is 清华大学, 4 words of 6 and of 4.
    assert compare_unspaced(["北京清华大学"], "清华大学") == (0.0, pytest.approx(0.8))
    # Four words are in common, but no more than two of them stand together.
    assert compare_unspaced(["甲乙丙丁"], "丙丁甲乙").f1 == 0.5
    assert compare_unspaced(["“甲·乙”"], "甲乙") == (1.0, 1.0)


# calc_f1_score of the script's version 5, with the word tokenizer of nltk 3.10.4, on answers of CMRC 2018's dev
@pytest.mark.parametrize(
    ("right", "found", "f1"),
    [
        ("364.6公里", ".6公里，由三茂铁路股份", 0.30769230769230765),
        ("三茂铁路股份有限公司", ".6公里，由三茂铁路股份有限公司管", 0.8),
        ("Henry A. Walsh", "A. Walsh 设计了哥特式", 0.36363636363636365),
        ("Henry A. Walsh", "夫兰的建筑师Henry", 0.2),
        ("Henry A. Walsh", "y A. Walsh ", 2 / 3),
        ("分别为6.5万、8.5万人次", ".5万人次。自20", 0.4),
        ("还有、A．Ｌ．纳戴、威廉·普拉格等。", "还有、A．Ｌ．纳戴、威廉·普", 0.8421052631578948),
        ("1,000米", ",000米，是香港", 0.28571428571428575),
        ("Terry A. Gates与其同事", "类似，根据Terry A. Gates与其同事的亲缘", 2 / 3),
    ],
)
def test_f1_is_that_of_the_official_script_with_other_scripts_between(right, found, f1):
    assert compare_unspaced([right], found).f1 == pytest.approx(f1)


def test_where_there_is_no_answer_none_is_right():
    assert compare_unspaced([], "") == compare_unspaced(["。"], "") == (1.0, 1.0)
    assert compare_unspaced([], "中") == compare_unspaced(["中"], "") == (0.0, 0.0)


def test_the_right_answers_decide_how_all_are_compared():
    assert comparison("auto", [["北京"], ["1998"], ["上海"], []]) is compare_unspaced
    assert comparison("auto", [["Yuan (元)"], ["1998"], ["Ann"]]) is compare
    assert comparison("auto", []) is compare
    assert comparison("spaces", [["北京"]]) is compare
    assert comparison("ideographs", [["Ann"]]) is compare_unspaced


@pytest.mark.parametrize(("words", "f1"), [("auto", 14 / 15), ("spaces", 2 / 3)])
def test_a_task_in_chinese_is_scored_by_ideographs(words, f1):
    config = QuestionAnsweringConfig(train="cmrc.json", answer_words=words)
    right, given = ["北京清华大学", "1998", "上海"], ["清华大学", "1998", "上海"]
    examples = [Question(n, ("?", text), answers=(GoldAnswer(text, 0, len(text)),)) for n, text in enumerate(right)]
    found = [PredictedAnswer((Candidate(text, 0, len(text), 1.0),), 0.0) for text in given]
    scores = config.learn(examples, "train").score(examples, found)
    assert scores == {"exact": pytest.approx(2 / 3), "f1": pytest.approx(f1)}
    lines = [{"label": [own], "prediction": text} for own, text in zip(right, given, strict=True)]
    assert np.mean(config.contributions(lines, "f1")) == pytest.approx(f1)
