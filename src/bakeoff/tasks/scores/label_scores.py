"""Precision, recall and F1 of each label."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from bakeoff.config import Config


class LabelScore(Config):
    """The scores of the predictions of one label, as fractions; a ratio is 0 where its denominator is 0."""

    precision: float
    """The share of the label's predictions that are right."""
    recall: float
    """The share of the examples, or spans, with the label for which it is predicted."""
    f1: float
    """2 P R / (P + R) of precision P and recall R (van Rijsbergen 1979)."""
    count: int = Field(ge=0)
    """The number of examples, or spans, with the label."""


class LabelCounts(NamedTuple):
    """Counts of one label."""

    right: int
    """The number of right predictions of the label."""
    wanted: int
    """The number of examples, or spans, with the label."""
    given: int
    """The number of predictions of the label, right and wrong ones."""


def label_scores(counts: Mapping[str, LabelCounts]) -> dict[str, LabelScore]:
    """The scores of each label by its name, in the order of the counts."""
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
    """The counts of each class by its name, where every example has one right and one predicted class."""
    right = (label for label, predicted in zip(labels, predictions, strict=True) if label == predicted)
    return counts_from(right, labels, predictions, names)


def counts_from(
    right: Iterable[str], wanted: Iterable[str], given: Iterable[str], names: Sequence[str] | None = None
) -> dict[str, LabelCounts]:
    """The counts of labels by name; by default of all labels that occur, sorted.

    Args:
        right: the label of each right prediction.
        wanted: the label of each example, or span.
        given: the label of each prediction.
        names: the labels to count; None: all labels of `wanted` and `given`.
    """
    counted = [Counter(side) for side in (right, wanted, given)]
    known = sorted({*counted[1], *counted[2]}) if names is None else names
    return {name: LabelCounts(*(side[name] for side in counted)) for name in known}
