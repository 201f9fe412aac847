"""Verdicts in words: better, equivalent, identical or undecided, and what would decide an undecided one."""

import math
from collections.abc import Mapping

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.display.wording import counted, listed, verb

IDENTICAL = "identical in every row and seed"
"""The verdict on what counts alike, to the last bit."""


def more_exceed(number: int, where: str = "") -> str:
    """The differences that no sentence of their own says: 2 more differences exceed the noise."""
    return f"{counted(number, 'more difference')}{where} {verb(number, 'exceeds', 'exceed')} the noise"


def verdict(measure: ShownMetric, difference: Difference) -> str:
    """The verdict in a table."""
    if difference.verdict == "identical":
        if not difference.equivalent or difference.margin is None:
            return IDENTICAL
        return f"{IDENTICAL}; equivalent within {measure.size(difference.margin)}{measure.steps}"
    if difference.real is None:
        return "no claim"
    if difference.verdict == "equivalent" and difference.margin is not None:
        real = "; real, but smaller than that" if difference.real else ""
        return f"equivalent within {measure.size(difference.margin)}{measure.steps}{real}"
    noise = "exceeds the noise" if difference.real else "within the noise"
    if difference.margin is None:
        return noise
    return f"{'better' if difference.real else 'undecided'}: {noise}"


def what_would_decide(measure: ShownMetric, difference: Difference, rows: Mapping[str, int]) -> str:
    """What would have been found of an undecided difference, and what would decide it; empty for others.

    Args:
        measure: the metric.
        difference: the difference.
        rows: the test rows of the tasks that it is about, by their names.
    """
    if (found := difference.deciding) is None:
        return ""
    text = "with these seeds and rows no difference would have been found, however large"
    if found.detectable is not None:
        size = f"{measure.extent(found.detectable)}{measure.steps}"
        text = f"with these seeds and rows a difference of {size} would have been found in half of all cases"
    ways = ways_to_decide(measure, difference, rows)
    return f"{text}; {ways}" if ways else text


def found_in_half(measure: ShownMetric, difference: Difference) -> str:
    """The difference that would have been found in half of all cases, in a table; empty where it is decided."""
    if (found := difference.deciding) is None:
        return ""
    return "none" if found.detectable is None else measure.extent(found.detectable)


def ways_to_decide(measure: ShownMetric, difference: Difference, rows: Mapping[str, int]) -> str:
    """What would find the margin, or without one the difference as it was measured: 7 seeds or 1,800 rows would ...

    Args:
        measure: the metric.
        difference: the difference.
        rows: the test rows of the tasks that it is about, by their names.
    """
    if (found := difference.deciding) is None or found.target == 0:
        return ""
    goal = "one as large as it looks"
    if difference.margin is not None:
        goal = f"{measure.extent(found.target)}{measure.steps}"
    ways = [] if found.seeds is None else [counted(found.seeds, "seed")]
    ways += [] if found.rows is None else [_more_rows(found.rows, rows)]
    if not ways and found.both is not None:
        ways = [f"{_times(found.both)} as many seeds and rows together"]
    if not ways:
        return f"no number of seeds and rows in reach would find {goal}"
    return f"{listed(ways, 'or')} would find {goal}"


def _more_rows(times: float, rows: Mapping[str, int]) -> str:
    """A number of test rows, to two digits: 1,800 rows; of several tasks, how many times as many."""
    if len(rows) != 1:
        return f"{_times(times)} as many test rows of each task"
    (count,) = rows.values()
    digits = 10 ** max(0, math.floor(math.log10(max(1, count * times))) - 1)
    return f"{math.ceil(count * times / digits) * digits:,} rows"


def _times(times: float) -> str:
    """How many times, never fewer than it takes: 1.3 times, 54 times."""
    return f"{math.ceil(times)} times" if times >= 10 else f"{math.ceil(10 * times) / 10:g} times"
