"""Spans in sequences of tags, and their F1: B-X begins a span, I-X continues it, O is outside.

The rules are those of conlleval (Tjong Kim Sang and Buchholz 2000), which reads IOB1, IOB2 and BIOES alike: I-X also
begins a span where no span of X is open. BILOU and BMES are BIOES by other letters. Tags without types, such as B and I
for chunks or B, M, E and S for the words of Chinese, mark spans of one nameless type.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.scores.label_scores import LabelCounts, counts_from

OUTSIDE = "O"
NAMELESS = "span"
"""The name under which spans of tags without types are counted."""
_TAG = re.compile(r"(?P<prefix>[BIESLUM])(?:-(?P<type>.+))?")
_SAME = {"L": "E", "U": "S", "M": "I"}


class Span(NamedTuple):
    """A stretch of words of one type."""

    type: str
    """The type, such as PER; empty for tags without types."""
    first: int
    """The index of the first word."""
    end: int
    """The index after the last word."""


def parted(tag: str) -> tuple[str, str] | None:
    """The prefix of a tag by the letters of BIOES, and its type; None for O and for tags of no span.

    L and U of BILOU are E and S, and M of BMES is I. The type is empty for a tag that is a prefix alone.
    """
    match = _TAG.fullmatch(tag)
    if match is None:
        return None
    return _SAME.get(match["prefix"], match["prefix"]), match["type"] or ""


def have_types(tags: Collection[str]) -> bool:
    """Whether tags of spans have types; in a column they all have one, or none has."""
    return any(type for _, type in filter(None, map(parted, tags)))


def are_spans(tags: Collection[str]) -> bool:
    """Whether tags mark spans: IOB1, BIO, BIOES, BILOU or BMES, with types or without.

    Tags with types do where any begins with B- or I-, or all but O with another letter of these schemes. Tags without
    types do where there is no other tag, one begins a span, and others go on with it or are O.
    """
    inside = set(tags) - {OUTSIDE}
    if any(tag.startswith(("B-", "I-")) and parted(tag) for tag in inside):
        return True
    if not inside or not all(map(parted, inside)):
        return False
    types = {type for _, type in filter(None, map(parted, inside))}
    prefixes = {prefix for prefix, _ in filter(None, map(parted, inside))}
    if types != {""}:
        return "" not in types
    goes_on = OUTSIDE in tags or bool(prefixes & {"I", "E"})
    return ("B" in prefixes and goes_on) or ("I" in prefixes and OUTSIDE in tags)


def spans_of(tags: Sequence[str]) -> Iterator[Span]:
    """The spans of a sequence of tags, in their order."""
    first, type, last = 0, None, ""  # of the span that is open, and the prefix of its last tag
    for index, tag in enumerate([*tags, OUTSIDE]):
        prefix, tag_type = parted(tag) or (OUTSIDE, None)
        begins = prefix in "BS" or tag_type != type or last in ("E", "S")
        if type is not None and begins:
            yield Span(type, first, index)
            type = None
        if tag_type is not None and type is None:
            first, type = index, tag_type
        last = prefix


class SpanCounts(NamedTuple):
    """Counts of spans in N sequences."""

    right: NDArray[np.int64]
    """(N,) the number of predicted spans whose type, beginning and end are right."""
    wanted: NDArray[np.int64]
    """(N,) the number of true spans."""
    given: NDArray[np.int64]
    """(N,) the number of predicted spans."""


def span_counts(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> SpanCounts:
    """The counts of spans in each of N sequences of true tags and N sequences of predicted tags."""
    wanted, given = ([set(spans_of(tags)) for tags in side] for side in (true, predicted))
    both = [one & other for one, other in zip(wanted, given, strict=True)]
    return SpanCounts(*(np.array([len(each) for each in side], np.int64) for side in (both, wanted, given)))


def type_counts(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, LabelCounts]:
    """The counts of spans of each type over all sequences, by the name of the type, or `span` without types."""
    wanted, given = ([set(spans_of(tags)) for tags in side] for side in (true, predicted))
    both = [one & other for one, other in zip(wanted, given, strict=True)]
    return counts_from(_types(both), _types(wanted), _types(given))


def _types(rows: Sequence[set[Span]]) -> Iterator[str]:
    """The type of every span of some sequences, by name."""
    return (span.type or NAMELESS for row in rows for span in row)


def span_scores(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 of spans over all sequences; a span is right if its type, beginning and end are.

    Args:
        true: (N,) sequences of true tags.
        predicted: (N,) sequences of predicted tags, of the same lengths.
    """
    right, total, guessed = (int(each.sum()) for each in span_counts(true, predicted))
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
    prefix, _ = parted(tag) or (OUTSIDE, "")
    if prefix in ("I", "E"):
        return goes_on(before, tag)
    return not (closed and _is_open(before))


def goes_on(before: str, tag: str) -> bool:
    """Whether a span of a tag's type is open after the tag in front, so that it may go on, or another may follow it."""
    this, other = parted(tag), parted(before)
    return _is_open(before) and this is not None and other is not None and this[1] == other[1]


def _is_open(tag: str) -> bool:
    return (parted(tag) or (OUTSIDE, ""))[0] in ("B", "I")
