"""Scores of answers as texts: exact match and F1 of words, as SQuAD 2.0's official script has them.

Rajpurkar et al. 2016 (section 6.1) and 2018; `evaluate-v2.0.py`. An answer is compared in lower case, without the marks
of ASCII punctuation and without the words a, an and the; the best of several right answers counts. Texts are in NFC,
which the script leaves to its files.
"""

import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

_ARTICLES = regex.compile(r"(?<![\w\p{N}])(a|an|the)(?![\w\p{N}])")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """An answer in the form in which it is compared: words in lower case, without punctuation and articles."""
    return " ".join(_ARTICLES.sub(" ", normalize("NFC", text).lower().translate(_PUNCTUATION)).split())


def word_f1(right: str, predicted: str) -> float:
    """The F1 of words in common between two answers; 1 where both are empty."""
    wanted, given = normalised(right).split(), normalised(predicted).split()
    if not wanted or not given:
        return float(wanted == given)
    common = sum((Counter(wanted) & Counter(given)).values())
    return 2 * common / (len(wanted) + len(given))


class Right(NamedTuple):
    """The scores of an answer, from 0 to 1."""

    exact: float
    """1 where the answer is one of the right answers, else 0."""
    f1: float
    """The F1 of words with the most similar of the right answers."""


def compare(right: Sequence[str], predicted: str) -> Right:
    """The scores of an answer, compared with all right answers; without a right answer, the empty one is right."""
    texts = [text for text in right if normalised(text)] or [""]
    wanted = normalised(predicted)
    return Right(float(wanted in map(normalised, texts)), max(word_f1(text, predicted) for text in texts))


def scores_of_answers(results: Sequence[Right], answerable: Sequence[bool]) -> dict[str, float]:
    """The mean scores of predictions, and where some questions have no answer, those of the questions with and without.

    Args:
        results: (N,) how right the prediction for each question is.
        answerable: (N,) whether the question has an answer.
    """
    scores = _means(results)
    if not all(answerable):
        for name, has in (("has_answer_", True), ("no_answer_", False)):
            part = [right for right, each in zip(results, answerable, strict=True) if each == has]
            scores |= _means(part, name)
    return scores


def _means(results: Sequence[Right], prefix: str = "") -> dict[str, float]:
    """The mean scores of some answers, each name after the prefix; empty without answers."""
    if not results:
        return {}
    means = {each: float(np.mean([getattr(right, each) for right in results])) for each in Right._fields}
    return {f"{prefix}{each}": round(value, 7) for each, value in means.items()}


def best_threshold(differences: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    """The best threshold for giving an answer: an answer is given where the difference is not above it.

    The threshold lies in the middle between two differences, so that rounding does not move an answer across it. Of
    equally good thresholds the lowest is taken, as `find_best_thresh` of the official script does.

    Args:
        differences: (N,) the score of no answer minus the score of the best answer.
        gains: (N,) the score gained by giving the answer instead of none.
    """
    order = np.argsort(differences, kind="stable")
    values = differences[order]
    totals = np.cumsum(gains[order])
    ends = np.flatnonzero(np.append(values[1:] > values[:-1], True))  # after the last of those that are equal
    best = ends[totals[ends].argmax()]
    if totals[best] <= 0:
        return float(values[0] - 1)
    return float(values[best] + 1 if best == ends[-1] else (values[best] + values[best + 1]) / 2)
