"""Spans in sequences of tags, and their F1: B-X begins a span, I-X continues it, O is outside.

The rules are those of conlleval (Tjong Kim Sang and Buchholz 2000), which reads IOB1, IOB2 and BIOES alike: I-X also
begins a span where no span of X is open.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.scores.label_scores import LabelCounts, counts_from

OUTSIDE = "O"
_TAG = re.compile(r"(?P<prefix>[BIESLU])-(?P<type>.+)")


class Span(NamedTuple):
    """A stretch of words of one type."""

    type: str
    """The type, such as PER."""
    first: int
    """The index of the first word."""
    end: int
    """The index behind the last word."""


def parted(tag: str) -> tuple[str, str] | None:
    """The prefix and type of a tag, L and U of BILOU as E and S of BIOES; None for O and for tags of no span."""
    found = _TAG.fullmatch(tag)
    if found is None:
        return None
    return {"L": "E", "U": "S"}.get(found["prefix"], found["prefix"]), found["type"]


def spans_of(tags: Sequence[str]) -> Iterator[Span]:
    """The spans of a sequence of tags, in their order."""
    first, type, last = 0, "", ""  # of the span that is open, and the prefix of its last tag
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, own = parted(tag) or (OUTSIDE, "")
        begins = prefix in "BS" or own != type or last in ("E", "S")
        if type and (begins or prefix == OUTSIDE):
            yield Span(type, first, place)
            type = ""
        if own and not type:
            first, type = place, own
        last = prefix


class SpanCounts(NamedTuple):
    """Counts of spans in N sequences."""

    right: NDArray[np.int64]
    """(N,) the number of predicted spans whose type, beginning and end are right."""
    wanted: NDArray[np.int64]
    """(N,) the number of true spans."""
    given: NDArray[np.int64]
    """(N,) the number of predicted spans."""


def span_counts(true: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> SpanCounts:
    """The counts of spans in each of N sequences of true tags and N sequences of predicted tags."""
    wanted, given = ([set(spans_of(tags)) for tags in side] for side in (true, found))
    both = [one & other for one, other in zip(wanted, given, strict=True)]
    return SpanCounts(*(np.array([len(each) for each in side], np.int64) for side in (both, wanted, given)))


def type_counts(true: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, LabelCounts]:
    """The counts of spans of each type over all sequences, by the name of the type."""
    wanted, given = ([set(spans_of(tags)) for tags in side] for side in (true, found))
    both = [one & other for one, other in zip(wanted, given, strict=True)]
    right, needed, found_ones = ((span.type for row in side for span in row) for side in (both, wanted, given))
    return counts_from(right, needed, found_ones)


def span_scores(true: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 of spans over all sequences; a span is right if its type, beginning and end are.

    Args:
        true: (N,) sequences of true tags.
        found: (N,) sequences of predicted tags, of the same lengths.
    """
    right, total, guessed = (int(each.sum()) for each in span_counts(true, found))
    return {
        "f1": 2 * right / (total + guessed) if total + guessed else 0.0,
        "precision": right / guessed if guessed else 0.0,
        "recall": right / total if total else 0.0,
    }


def may_follow(before: str, tag: str, closed: bool) -> bool:
    """Whether a tag may follow another one; with O as the other one, also whether it may begin a sentence.

    Args:
        before: the tag in front.
        tag: the tag.
        closed: whether spans end with E or S, so that no span ends with B or I.
    """
    prefix, type = parted(tag) or (OUTSIDE, "")
    prefix_before, type_before = parted(before) or (OUTSIDE, "")
    is_open = prefix_before in ("B", "I")
    if prefix in ("I", "E"):
        return is_open and type == type_before
    return not (closed and is_open)
