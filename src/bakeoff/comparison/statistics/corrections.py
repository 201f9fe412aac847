"""Corrections of p-values for the number of questions that are asked at once."""

from collections.abc import Sequence
from functools import cache


def stepwise(p_values: Sequence[float], factors: Sequence[int]) -> list[float]:
    """Adjusted p-values: the k-th smallest times the k-th factor, at most 1 and never decreasing.

    With the factors m, m - 1, ..., 1 this is Holm (1979): m - k of m hypotheses may still be true when k are rejected.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for factor, i in zip(factors, sorted(range(len(p_values)), key=lambda i: p_values[i]), strict=True):
        highest = max(highest, min(1.0, p_values[i] * factor))
        adjusted[i] = highest
    return adjusted


def holm(count: int) -> list[int]:
    """The factors of Holm (1979) for a number of hypotheses of which any may be true."""
    return list(range(count, 0, -1))


def shaffer(groups: int) -> list[int]:
    """The factors of Shaffer (1986) for all pairs of some groups.

    If one pair of four groups differs, at most three of the other five can be equal: the equal pairs are those within
    classes of equal groups. The k-th factor is the largest such number among those that k rejections leave.
    """
    pairs = groups * (groups - 1) // 2
    return [max(each for each in _possible(groups) if each <= pairs - k) for k in range(pairs)]


@cache
def _possible(groups: int) -> frozenset[int]:
    """The numbers of equal pairs that a number of groups can have."""
    if groups == 0:
        return frozenset({0})
    return frozenset(
        size * (size - 1) // 2 + rest for size in range(1, groups + 1) for rest in _possible(groups - size)
    )
