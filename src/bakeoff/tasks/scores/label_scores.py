"""Precision, recall and F1 of each label by itself."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from bakeoff.config import Config


class LabelScore(Config):
    """How well one label is found; fractions, 0 where a ratio has nothing below."""

    precision: float
    """The share of the label's predictions that are right."""
    recall: float
    """The share of the examples with the label for which it is predicted."""
    f1: float
    """2 P R / (P + R) of precision P and recall R (van Rijsbergen 1979)."""
    count: int = Field(ge=0)
    """How many examples, or spans, have the label."""


class LabelCounts(NamedTuple):
    """Counts of one label's predictions."""

    right: int
    """How many predictions of the label are right."""
    wanted: int
    """How many examples, or spans, have the label."""
    given: int
    """How many predictions of the label there are."""


def label_scores(counts: Mapping[str, LabelCounts]) -> dict[str, LabelScore]:
    """The scores of each label, in the order of the counts."""
    return {
        name: LabelScore(
            precision=round(each.right / max(1, each.given), 7),
            recall=round(each.right / max(1, each.wanted), 7),
            f1=round(2 * each.right / max(1, each.given + each.wanted), 7),
            count=each.wanted,
        )
        for name, each in counts.items()
    }


def counts_of(labels: list[str], predictions: list[str], names: list[str]) -> dict[str, LabelCounts]:
    """The counts of each class, where every example has one right class and one predicted class."""
    right = (label for label, found in zip(labels, predictions, strict=True) if label == found)
    return counts_from(right, labels, predictions, names)


def counts_from(
    right: Iterable[str], wanted: Iterable[str], given: Iterable[str], names: Sequence[str] | None = None
) -> dict[str, LabelCounts]:
    """The counts of each of some names, by default of all that occur, sorted.

    Args:
        right: a name for each time that it was given rightly.
        wanted: for each time that it was to be given.
        given: for each time that it was given.
        names: which; None: those that were to be given, or were.
    """
    counted = [Counter(side) for side in (right, wanted, given)]
    known = sorted({*counted[1], *counted[2]}) if names is None else names
    return {name: LabelCounts(*(side[name] for side in counted)) for name in known}
