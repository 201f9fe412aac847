"""What would decide an undecided difference: how many more seeds or rows, from the variances that were measured."""

import math
from bisect import bisect_left
from collections.abc import Callable

from bakeoff.comparison.statistics.noise import LEVEL, Noise
from bakeoff.config import Config

MOST_SEEDS, MOST_TIMES = 100, 100.0
"""The most seeds, and the most times as many rows, that are advised."""


class Deciding(Config):
    """What would have been found of an undecided difference, and what would decide it."""

    detectable: float | None
    """The true difference that would have been found in half of all cases, with these seeds and rows; None: none would,
    for no difference can be so large."""
    target: float
    """The difference that is to be found: the margin, or without one the difference as it was measured."""
    seeds: int | None = None
    """Seeds with which the target would be found in half of all cases, with these rows; None: no number up to 100."""
    rows: float | None = None
    """How many times as many test rows would find it, with these seeds; None: no number up to a hundred."""
    both: float | None = None
    """How many times as many seeds and rows together would find it; None: no number up to a hundred."""


def deciding(noise: Noise, target: float, factor: int, widest: float = math.inf) -> Deciding:
    """What would find a difference of `target` in half of all cases.

    Args:
        noise: the noise of the difference.
        target: the size of the difference.
        factor: the factor of the correction that its p-value meets.
        widest: the largest difference that there can be.
    """

    def finds(seeds: float, rows: float) -> bool:
        return noise.with_more(seeds, rows).quantile(LEVEL / factor) <= target

    numbers = range(noise.seeds + 1, MOST_SEEDS + 1)
    detectable = noise.quantile(LEVEL / factor)
    first = bisect_left(numbers, True, key=lambda seeds: finds(seeds / noise.seeds, 1))
    return Deciding(
        detectable=detectable if detectable <= widest else None,
        target=target,
        seeds=numbers[first] if first < len(numbers) else None,
        rows=_least(lambda times: finds(1, times)),
        both=_least(lambda times: finds(times, times)),
    )


def _least(enough: Callable[[float], bool]) -> float | None:
    """The least number of times, by bisection of its logarithm to a hundredth; None: a hundred are too few."""
    if not enough(MOST_TIMES):
        return None
    low, high = 0.0, math.log(MOST_TIMES)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)
