"""The same comparison at several points of a scale, such as numbers of labelled rows: where a lead changes, what pays.

Each point has scores of its own, with differences and intervals as in `bakeoff.comparison.statistics.pairs`. The
differences of every two recipes at all points are one family for Holm's correction, and the gains of pre-training at
all points another; what shows two recipes to be equivalent is corrected likewise.

Two recipes *cross* where one is ahead beyond the noise at a point, and the other one at a later point. Pre-training
*pays from* a point where its gain is above zero beyond the noise there and at every later one.

The place where a gain crosses zero is found by drawing straight lines through the gains, over the logarithm of the
scale; its interval goes from where the upper ends of the gains' intervals are above zero to where the lower ends are.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Literal

from pydantic import Field

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.statistics.questions import Difference, decide
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.config import Config


class SeriesPoint(Config):
    """The scores at a point of a series."""

    at: float
    """The place on the scale."""
    name: str
    """The place in words, such as 100 rows."""
    task: str
    """The name of the task in the results that has this point's rows."""
    pretrained: dict[str, Spread]
    """The metric over seeds with pre-trained weights, by recipe."""
    scratch: dict[str, Spread] = Field(default={})
    """The metric over seeds from random weights, by recipe."""
    gains: dict[str, Difference] = Field(default={})
    """The difference between pre-trained and random weights, by recipe."""
    pairs: list[Difference] = Field(default=[])
    """The differences of every two recipes, in the plan's order and not the better one first."""

    @classmethod
    def of(cls, at: float, name: str, analysis: Analysis) -> "SeriesPoint":
        """The point of a task's statistics, whose differences `series` decides with those of the other points."""
        return cls(
            at=at,
            name=name,
            task=analysis.task,
            pretrained=analysis.pretrained,
            scratch=analysis.scratch,
            gains=analysis.gains,
            pairs=analysis.pairs,
        )


class Crossing(Config):
    """Two recipes of which each is ahead beyond the noise at some points of a series."""

    first: str
    """The label of the recipe that is ahead at lower points."""
    second: str
    """The label of the one that is ahead at higher points."""
    after: float
    """The last point at which the first is ahead beyond the noise."""
    before: float
    """The first point after it at which the second is."""


class BreakEven(Config):
    """The place of a scale from which a recipe's pre-training gains, up to the highest point."""

    recipe: str
    """The label of the recipe."""
    real_from: float | None
    """The lowest point from which on every gain exceeds the noise; None: there is none."""
    estimate: float | None
    """The place from which on the gain is above zero; None: at the highest point it is not."""
    interval: tuple[float | None, float | None]
    """The 95 % interval of this place; None: below the lowest point, or above the highest."""


class Series(Config):
    """The same comparison on one task at several points of a scale."""

    task: str
    """The name of the plan's task."""
    scale: Literal["rows", "budget"]
    """The scale: labelled rows to learn from, or percent of the budget of pre-training."""
    points: list[SeriesPoint]
    """The points, the lowest first."""
    crossings: list[Crossing] = Field(default=[])
    """The recipes whose lead changes beyond the noise."""
    break_even: list[BreakEven] = Field(default=[])
    """The places from which pre-training gains, in percent of the budget; empty without scores from scratch."""


def series(
    task: str, scale: Literal["rows", "budget"], points: Sequence[SeriesPoint], lower_is_better: bool, looks: int = 0
) -> Series:
    """A series, with verdicts over all its points.

    Args:
        task: the name of the plan's task.
        scale: the scale.
        points: the points, whose differences have been decided point by point.
        lower_is_better: whether a lower score is better.
        looks: how many times verdicts were seen before more seeds were added.
    """
    ordered = sorted(points, key=lambda point: point.at)
    labels = [label for label in ordered[0].pretrained if all(label in point.pretrained for point in ordered)]
    pairs = _decided([_oriented(point.pairs, labels) for point in ordered], looks)
    of_gains = _decided([[*point.gains.values()] for point in ordered], looks)
    gains = [dict(zip(point.gains, each, strict=True)) for point, each in zip(ordered, of_gains, strict=True)]
    decided = [
        point.model_copy(update={"pairs": of_point, "gains": gains_there})
        for point, of_point, gains_there in zip(ordered, pairs, gains, strict=True)
    ]
    by_labels = [{(pair.first, pair.second): pair for pair in of_point} for of_point in pairs]
    sign = -1 if lower_is_better else 1
    places = [point.at for point in ordered]
    crossings = [
        crossing
        for first, second in combinations(labels, 2)
        for crossing in _crossings(places, [each.get((first, second)) for each in by_labels], sign)
    ]
    even = [
        _break_even(label, places, [each[label] for each in gains], sign)
        for label in labels
        if scale == "budget" and all(label in each for each in gains)
    ]
    return Series(task=task, scale=scale, points=decided, crossings=crossings, break_even=even)


def _oriented(pairs: Sequence[Difference], labels: Sequence[str]) -> list[Difference]:
    """The differences of these recipes, each from the one that stands first among the labels."""
    there = [pair for pair in pairs if pair.first in labels and pair.second in labels]
    return [pair if labels.index(pair.first) < labels.index(pair.second) else pair.turned for pair in there]


def _decided(points: Sequence[Sequence[Difference]], looks: int) -> list[list[Difference]]:
    """The differences of all points with the verdicts of one family."""
    together = [each for point in points for each in point]
    margin = next((each.margin for each in together if each.margin is not None), None)
    decided = iter(decide(together, asking=Asking(margin=margin, looks=looks)))
    return [[next(decided) for _ in point] for point in points]


def _crossings(places: Sequence[float], pairs: Sequence[Difference | None], sign: int) -> Iterator[Crossing]:
    """Where the lead of one recipe over the other changes beyond the noise."""
    leads = [
        (place, pair if sign * pair.difference > 0 else pair.turned)
        for place, pair in zip(places, pairs, strict=True)
        if pair is not None and pair.real
    ]
    for (after, one), (before, other) in pairwise(leads):
        if one.first != other.first:
            yield Crossing(first=one.first, second=other.first, after=after, before=before)


def _break_even(label: str, places: Sequence[float], gains: Sequence[Difference], sign: int) -> BreakEven:
    """The place from which on a gain is above zero, with its interval."""
    better = [sign * gain.difference for gain in gains]
    real_from = None
    for place, gain, value in zip(reversed(places), reversed(gains), reversed(better), strict=True):
        if not gain.real or value <= 0:
            break
        real_from = place
    ends = [None if gain.interval is None else sorted(sign * end for end in gain.interval) for gain in gains]
    low: float | None = None
    high: float | None = None
    if all(each is not None for each in ends):
        low, high = (_above_zero(places, [each[end] for each in ends if each is not None]) for end in (1, 0))
    return BreakEven(
        recipe=label,
        real_from=real_from,
        estimate=_above_zero(places, better),
        interval=(None if low == places[0] else low, high),
    )


def _above_zero(places: Sequence[float], values: Sequence[float]) -> float | None:
    """The place from which on a line through values stays above zero; None: at the last place it is not."""
    if values[-1] <= 0:
        return None
    lowest = places[-1]
    for (left, a), (right, b) in reversed([*pairwise(zip(places, values, strict=True))]):
        if a <= 0:
            share = -a / (b - a)
            return math.exp(math.log(left) + share * (math.log(right) - math.log(left)))
        lowest = left
    return lowest
