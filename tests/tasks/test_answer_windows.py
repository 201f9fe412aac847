"""Where an answer stands in the windows over its context."""

import random

import pytest
from tests.conftest import shrink

from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.reading.gold_answers import placed
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.answer_windows import answer_windows
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

CONTEXT = "The old stones of 3,141 rivers; a river's (grey) stone, and stonework of 1889-1890 behind the rivers."


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram"])
def test_the_target_is_the_fewest_tokens_that_hold_the_whole_answer(kind):
    """Also where a token holds more than the answer, as where a number is asked for and a range is given."""
    size = 320 if kind == "byte_bpe" else 90
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, size=size), [f"{CONTEXT} {CONTEXT}"] * 20)
    format = InputFormat(tokenizer, shrink("bert-tiny"), 64)
    draw, questions = random.Random(0), []
    while len(questions) < 60:
        begin, end = sorted(draw.sample(range(len(CONTEXT) + 1), 2))
        answer = CONTEXT[begin:end]
        if answer.strip() == answer and answer:
            questions.append(Question(1, ("which?", CONTEXT), answers=(placed(answer, begin, CONTEXT, "here"),)))
    found = answer_windows(questions, format, 8, 16)
    inside = partial = 0
    for window in found.windows:
        assert window.target is not None
        (answer,) = window.question.answers
        first, last = (place - 1 for place in window.target)
        if first < 0:
            continue
        inside += 1
        assert window.begin[first] <= answer.start < window.end[first]
        assert window.begin[last] < answer.end <= window.end[last]
        partial += window.begin[first] < answer.start or window.end[last] > answer.end
    assert inside >= 60
    assert partial > 5


def test_answers_that_are_too_long_to_be_predicted_are_counted():
    tokenizer = Tokenizer.train(TokenizerConfig(kind="character", size=60), [CONTEXT])
    answers = ["stones", "old stones", "The old stones of 3,141 rivers", "grey", CONTEXT]
    questions = [
        Question(line, ("w", CONTEXT), (placed(text, None, CONTEXT, ""),)) for line, text in enumerate(answers, 1)
    ]
    questions += [Question(6, ("w", CONTEXT), ()), Question(7, ("w", CONTEXT), (placed("zz", None, CONTEXT, ""),))]
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json", longest_answer=6), True, 0.0)
    _, split, long = task.encode(questions, InputFormat(tokenizer, shrink("bert-tiny"), 40)).notes
    assert split == (
        f"1 of 7 questions have an answer that is longer than a window; the first is line 5 ('{CONTEXT[:40]}...', 101 "
        "tokens): their windows have none; a larger length gives longer windows"
    )
    assert long == (
        "2 of 7 questions have an answer of more tokens than longest_answer, 6; the first is line 2 ('old stones', 10 "
        "tokens): none of these is predicted whole; the longest of them needs 30"
    )
    unknown = [Question(1, ("w", CONTEXT))]
    assert not task.encode(unknown, InputFormat(tokenizer, shrink("bert-tiny"), 40)).notes
