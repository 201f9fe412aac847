"""How the values of a task's metric are read: which are better, and how they and their differences are written."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.results import Analysis, Floor, Results
from bakeoff.comparison.statistics import Difference
from bakeoff.display.wording import MINUS, percent, points

DIGITS = 3
"""Digits of the largest mean that are shown of metrics on scales of their own."""


@dataclass(frozen=True)
class ShownMetric:
    """The metric of a task, as a reader sees it."""

    task: TaskFacts
    """The task."""
    largest: float = 1.0
    """The largest mean, by which values on a scale of their own have their decimals."""

    @classmethod
    def of(cls, results: Results, task: str) -> "ShownMetric":
        """The metric of the task of that name."""
        facts = next(each for each in results.tasks if each.name == task)
        analysis = next((each for each in results.analyses if each.task == task), None)
        spreads = [] if analysis is None else [*analysis.pretrained.values(), *analysis.scratch.values()]
        return cls(facts, max((abs(spread.mean) for spread in spreads), default=1.0))

    @property
    def heading(self) -> str:
        """The metric with its unit, for a column or an axis: accuracy, %."""
        parts = [self.task.metric_title]
        parts += [self.task.unit] if self.task.unit == "%" else []
        name = ", ".join(parts) + (f" {self.task.unit}" if self.task.unit not in ("%", "") else "")
        return f"{name} (less is better)" if self.task.lower_is_better else name

    @property
    def factor(self) -> int:
        """What values are drawn and written as multiples of."""
        return 100 if self.task.unit else 1

    @cached_property
    def decimals(self) -> int:
        """Digits behind the point."""
        if self.task.unit:
            return 1
        return min(6, max(0, DIGITS - 1 - math.floor(math.log10(self.largest)))) if self.largest > 0 else DIGITS - 1

    def value(self, value: float) -> str:
        """A value alone: 0.8123 as 81.2, or a mean absolute error as it is."""
        return percent(value) if self.task.unit else f"{value:.{self.decimals}f}".replace("-", MINUS)

    def amount(self, value: float) -> str:
        """A value in a sentence: 81.2 % accuracy."""
        if self.task.unit == "%":
            return f"{self.value(value)} % {self.task.metric_title}"
        unit = f" {self.task.unit}" if self.task.unit else ""
        return f"{self.value(value)} ({self.task.metric_title}{unit})"

    def short(self, value: float) -> str:
        """A value with its unit alone: 81.2 %."""
        return f"{self.value(value)} %" if self.task.unit == "%" else self.value(value)

    def change(self, value: float) -> str:
        """A difference with its sign: +3.1."""
        return points(value) if self.task.unit else f"{value:+.{self.decimals}f}".replace("-", MINUS)

    def size(self, value: float) -> str:
        """The size of a difference alone: 3.1."""
        return self.change(abs(value))[1:]

    @property
    def steps(self) -> str:
        """What differences are counted in, with a space before it; nothing where that is the metric's own scale."""
        return " points" if self.task.unit else ""

    def cut(self, interval: tuple[float, float]) -> tuple[float, float]:
        """A confidence interval, cut at what values can be: shares, correlations, errors."""
        if self.task.unit:
            lowest, highest = 0.0 if self.task.unit == "%" else -1.0, 1.0
        else:
            lowest, highest = 0.0 if self.task.lower_is_better else -math.inf, math.inf
        return max(interval[0], lowest), min(interval[1], highest)

    def gain(self, difference: float) -> float:
        """A difference as how much better it is."""
        return -difference if self.task.lower_is_better else difference

    def ranked(self, analysis: Analysis) -> list[str]:
        """The recipes by the mean over seeds, pre-trained, the best first."""
        return sorted(analysis.pretrained, key=lambda label: -self.gain(analysis.pretrained[label].mean))

    def strongest(self, floors: Iterable[Floor]) -> list[Floor]:
        """Floors by their score on test, the best first; of two that score the same the one that learns."""
        metric = self.task.metric
        return sorted(floors, key=lambda floor: (-self.gain(floor.test[metric]), floor.kind == "simplest"))


def against_the_best(analysis: Analysis, best: str) -> list[Difference]:
    """The differences of the best recipe from the others."""
    return [pair for pair in analysis.pairs if pair.first == best]
