"""Scores of answers in Chinese and Japanese, whose words no spaces separate, as in CMRC 2018's official script.

Cui et al. 2019 (arXiv:1810.07366); `cmrc2018_evaluate.py`, by which DRCD is scored as well. An answer is compared in
lower case and without some punctuation. Every ideograph is a word, and the F1 counts the longest run of words that both
answers have, instead of all words in common.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal
from unicodedata import normalize

import regex

from bakeoff.tasks.scores.answer_scores import Right, compare
from bakeoff.text.segmentation import IDEOGRAPHS

AnswerWords = Literal["auto", "spaces", "ideographs"]
"""The words of answers: spaces, words between white space as in SQuAD's script; ideographs, each ideograph a word as in
CMRC's; auto, whichever of the two the right answers suggest."""

AnswerComparison = Callable[[Sequence[str], str], Right]
"""A function from the right answers and the predicted answer to the scores of the predicted answer."""

_LEFT_OUT = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_IDEOGRAPH = regex.compile(f"[{IDEOGRAPHS}]")
_MARKS = r"""!"#$%&'()*+,./:;<=>?@\[\\\]^_`{|}~"""
# Ideographs; and what nltk makes of other scripts, to which the official script leaves them: words at white space,
# without the marks of ASCII, of which a comma before a digit and a full stop that ends nothing are part of a word.
_WORD = regex.compile(
    rf"[{IDEOGRAPHS}]\p{{M}}*+|(?:[^\s{IDEOGRAPHS}{_MARKS}]|,(?=\d)|\.(?!\s*(?:$|[{IDEOGRAPHS}])))+|[^\s{IDEOGRAPHS}]"
)


def unspaced_words(text: str) -> list[str]:
    """The words of an answer: each ideograph, and runs of other characters."""
    words: list[str] = _WORD.findall(_as_compared(text))
    return words


def compare_unspaced(right: Sequence[str], predicted: str) -> Right:
    """The scores of an answer, compared with all right answers; without a right answer, the empty one is right."""
    texts = [text for text in right if _as_compared(text)] or [""]
    wanted, words = _as_compared(predicted), unspaced_words(predicted)
    return Right(float(wanted in map(_as_compared, texts)), max(_run_f1(unspaced_words(text), words) for text in texts))


def comparison(words: AnswerWords, right: Iterable[Sequence[str]]) -> AnswerComparison:
    """The function that compares the answers to some questions.

    Args:
        words: the setting of the task's config. `auto` is `ideographs` where most of the questions with an answer have
            an ideograph in a right answer, else `spaces`.
        right: the texts of the right answers of each question.
    """
    if words == "auto":
        answered = [any(map(_IDEOGRAPH.search, texts)) for texts in right if any(texts)]
        words = "ideographs" if 2 * sum(answered) > len(answered) else "spaces"
    return compare_unspaced if words == "ideographs" else compare


def _as_compared(text: str) -> str:
    return normalize("NFC", text).lower().strip().translate(_LEFT_OUT)


def _run_f1(right: Sequence[str], predicted: Sequence[str]) -> float:
    """2 P R / (P + R), where the longest run of words in both answers is right; 1 where both are empty."""
    if not right or not predicted:
        return float(right == predicted)
    longest, before = 0, [0] * (len(predicted) + 1)  # the length of the run that ends at each word of `predicted`
    for word in right:
        row = [0, *(before[index] + 1 if word == other else 0 for index, other in enumerate(predicted))]
        longest, before = max(longest, *row), row
    return 2 * longest / (len(right) + len(predicted))
