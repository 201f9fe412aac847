"""Remarks on labelled questions: answers that do not stand where they should or are too long, and missing ones."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.reading.questions import Question


def remarks_on_questions(examples: Sequence[Question], lost: Sequence[Question], unanswerable: bool) -> Iterator[str]:
    """Remarks on labelled questions.

    Args:
        examples: the questions.
        lost: those of them whose answer does not stand in the context.
        unanswerable: whether some questions of train have no answer.
    """
    count = len(examples)
    if lost:
        yield (
            f"{len(lost)} of {count} questions have no answer that stands in the context, the first {lost[0].place} "
            f"('{shortened(lost[0])}'): nothing is learned from these, which are scored by their text"
        )
    moved = [each for each in examples if any(answer.moved for answer in each.answers or ())]
    if moved:
        yield (
            f"{len(moved)} of {count} questions have an answer that does not stand at its start, the first "
            f"{moved[0].place} ('{shortened(moved[0])}'): the nearest place where it does was taken"
        )
    widened = [each for each in examples if any(answer.widened for answer in each.answers or ())]
    if widened:
        yield (
            f"{len(widened)} of {count} questions have an answer that begins or ends between a letter and its marks, "
            f"the first {widened[0].place} ('{shortened(widened[0])}'): the whole of it is learned"
        )
    if (empty := sum(not each.answers for each in examples)) and not unanswerable:
        yield f"{empty} of {count} questions have no answer, as none of train has: all are given one"


def remarks_on_long_answers(
    examples: Sequence[Question], lengths: NDArray[np.int64], held: NDArray[np.bool_], longest: int
) -> Iterator[str]:
    """Remarks on answers that cannot be predicted whole, which depend on the tokenizer.

    Args:
        examples: the questions.
        lengths: (Q,) the number of tokens of each question's answer; 0 without one.
        held: (Q,) whether some window has the whole of it.
        longest: the most tokens of a predicted answer.
    """
    count = len(examples)

    def first(which: NDArray[np.int64]) -> str:
        each = examples[which[0]]
        return f"the first is {each.place} ('{shortened(each)}', {lengths[which[0]]} tokens)"

    if (split := np.flatnonzero((lengths > 0) & ~held)).size:
        yield (
            f"{len(split)} of {count} questions have an answer that is longer than a window; {first(split)}: their "
            "windows have none; a larger length gives longer windows"
        )
    if (long := np.flatnonzero(held & (lengths > longest))).size:
        yield (
            f"{len(long)} of {count} questions have an answer of more tokens than longest_answer, {longest}; "
            f"{first(long)}: none of these is predicted whole; the longest of them needs {lengths[long].max()}"
        )


def shortened(question: Question) -> str:
    """The first right answer of a question, cut to fit into a line."""
    text = " ".join("".join(answer.text for answer in (question.answers or ())[:1]).split())
    return text if len(text) <= 40 else f"{text[:40]}..."
