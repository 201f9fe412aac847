"""Answers without a model: a few words near the words that a question and its context have in common.

After the sliding window of Richardson et al. 2013 (MCTest), the baseline of Rajpurkar et al. 2016 (section 4.1): the
sentence with most of the question's words, and in it the other words that stand nearest to these.
"""

from collections.abc import Sequence
from unicodedata import normalize

import regex

from bakeoff.text.segmentation import RUN, WITHOUT_SPACES, WORD
from bakeoff.text.sentences import split_sentences

_WORD = regex.compile(rf"{RUN}(?:[.,'’-]{RUN})*|{WORD}|\$\d+(?:[.,]\d+)*", regex.V1)
_COUNTED = regex.compile(rf"(?={WITHOUT_SPACES}){WORD}|[[^\s]--{WITHOUT_SPACES}]+", regex.V1)
NEAR = 5
"""The number of words on each side of an answer among which the question's words are counted."""


def overlapping_answer(question: str, context: str, words: int) -> str:
    """A stretch of at most `words` words of the context; empty where the context has none.

    The best sentence has most words of the question, each counted once; on a tie it is the first. The best stretch of
    the sentence has fewest words of the question itself, then most of them near, each counted by 1 / its distance; on a
    tie it is the first.

    Args:
        question: the question.
        context: the text.
        words: the most words of an answer.
    """
    asked = set(_words(question))
    sentences = split_sentences(context) or [context]
    best = max(sentences, key=lambda sentence: len(asked.intersection(_words(sentence))))
    spans = [(match.start(), match.end()) for match in _WORD.finditer(best)]
    if not spans:
        return ""
    known = [normalize("NFC", best[begin:end]).lower() in asked for begin, end in spans]
    length = min(words, len(spans))

    def value(first: int) -> tuple[int, float]:
        end = first + length
        near = sum(1 / (first - index) for index in range(max(0, first - NEAR), first) if known[index])
        near += sum(1 / (index - end + 1) for index in range(end, min(len(known), end + NEAR)) if known[index])
        return -sum(known[first:end]), near

    first = max(range(len(spans) - length + 1), key=value)
    return best[spans[first][0] : spans[first + length - 1][1]]


def count_words(text: str) -> int:
    """The number of words of an answer: white space separates words; in scripts without it each cluster is one."""
    return len(_COUNTED.findall(text))


def _words(text: str) -> Sequence[str]:
    return [match.group().lower() for match in _WORD.finditer(normalize("NFC", text))]
