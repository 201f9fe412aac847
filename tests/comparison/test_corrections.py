"""Corrections for several questions, against lists of all that can be true."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.comparison.statistics.corrections import holm, shaffer, stepwise


def partitions(items):
    """All ways to part some items into classes."""
    if not items:
        yield []
        return
    first, *rest = items
    for classes in partitions(rest):
        yield [[first], *classes]
        for i in range(len(classes)):
            yield [*classes[:i], [first, *classes[i]], *classes[i + 1 :]]


def test_holm_by_hand():
    assert stepwise([0.01, 0.04, 0.03, 0.005], holm(4)) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stepwise([], []) == []
    assert stepwise([0.9, 0.8], holm(2)) == [1.0, 1.0]


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 6])
def test_no_more_pairs_can_be_equal_than_the_factor_says(groups):
    """Of every way in which recipes can be equal, the number of equal pairs is at most the factor at that step."""
    pairs = groups * (groups - 1) // 2
    equal = {sum(len(each) * (len(each) - 1) // 2 for each in classes) for classes in partitions(list(range(groups)))}
    assert shaffer(groups) == [max(each for each in equal if each <= pairs - k) for k in range(pairs)]


@pytest.mark.parametrize("groups", range(2, 12))
def test_pairs_are_corrected_by_no_more_than_holm(groups):
    factors = shaffer(groups)
    assert factors[0] == len(factors)
    assert all(1 <= ours <= usual for ours, usual in zip(factors, holm(len(factors)), strict=True))
    assert factors == sorted(factors, reverse=True)


@given(st.lists(st.floats(0, 1, allow_subnormal=False), max_size=8))
def test_the_order_of_p_values_stays(p_values):
    adjusted = stepwise(p_values, holm(len(p_values)))
    for (p, q), (a, b) in zip(itertools.combinations(p_values, 2), itertools.combinations(adjusted, 2), strict=True):
        assert (p <= q) <= (a <= b)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
