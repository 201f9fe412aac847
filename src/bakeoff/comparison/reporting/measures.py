"""The metric of a task as reports show it: its direction, its unit, and the form of values and differences."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.results import Baseline, Results
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import MINUS, percent, points

DIGITS = 3
"""Digits shown of the largest mean at least, for metrics with their own scale."""

MOST_DECIMALS = 6
"""The most digits after the decimal point."""


@dataclass(frozen=True)
class ShownMetric:
    """The metric of a task as reports show it."""

    task: TaskFacts
    """The facts of the task, with the metric's title, unit and direction."""
    largest: float = 1.0
    """The largest absolute mean of any recipe, which sets the number of decimals of a metric with its own scale."""
    finest: float = 0.0
    """Half the width of the narrowest interval of a difference, which sets it where more are needed; 0: there is none.
    """

    @classmethod
    def of(cls, results: Results, task: str) -> "ShownMetric":
        """The metric of the task of the name `task`."""
        facts = next(each for each in results.tasks if each.name == task)
        analysis = next((each for each in results.analyses if each.task == task), None)
        spreads = [] if analysis is None else [*analysis.pretrained.values(), *analysis.scratch.values()]
        largest = max((abs(spread.mean) for spread in spreads), default=1.0)
        return cls(facts, largest, 0.0 if analysis is None else _finest(analysis))

    @property
    def rows(self) -> int:
        """Number of test rows."""
        return self.task.rows["test"]

    @property
    def heading(self) -> str:
        """The metric with its unit, for a column or an axis: accuracy, %."""
        parts = [self.task.metric_title]
        parts += [self.task.unit] if self.task.unit == "%" else []
        name = ", ".join(parts) + (f" {self.task.unit}" if self.task.unit not in ("%", "") else "")
        return f"{name} (less is better)" if self.task.lower_is_better else name

    @property
    def factor(self) -> int:
        """The factor from a value to the shown number: 100 for a metric in percent or times 100, else 1."""
        return 100 if self.task.unit else 1

    @cached_property
    def decimals(self) -> int:
        """Number of digits after the decimal point: three digits of the largest mean, and the width of intervals.

        Of the half width h of the narrowest, as the Particle Data Group rounds errors ("Review of Particle Physics",
        introduction, section 5.3): two digits if they are below 36, else one.
        """
        if self.task.unit:
            return 1
        of_means = DIGITS - 1 - math.floor(math.log10(self.largest)) if self.largest > 0 else DIGITS - 1
        of_widths = math.ceil(-math.log10(self.finest / 3.55)) if self.finest > 0 else 0
        return min(MOST_DECIMALS, max(0, of_means, of_widths))

    def value(self, value: float) -> str:
        """A value alone: 0.8123 as 81.2, or a mean absolute error as it is."""
        return percent(value) if self.task.unit else f"{value:z,.{self.decimals}f}".replace("-", MINUS)

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
        return points(value) if self.task.unit else f"{value:+z,.{self.decimals}f}".replace("-", MINUS)

    def size(self, value: float) -> str:
        """The size of a difference alone: 3.1."""
        return self.change(abs(value))[1:]

    def extent(self, value: float) -> str:
        """The size of a difference in a sentence, which is never 0.0 where there is one: 3.1, or less than 0.1."""
        size = self.size(value)
        return size if value == 0 or float(size.replace(",", "")) > 0 else f"less than {size[:-1]}1"

    def between(self, low: float, high: float) -> str:
        """The 95 % interval of a difference in a sentence, from its lower to its upper end."""
        return f"95 % interval {self.change(low)} to {self.change(high)}{self.steps}"

    @property
    def steps(self) -> str:
        """The unit of differences, " points", with its space; empty for a metric with its own scale."""
        return " points" if self.task.unit else ""

    @property
    def extreme(self) -> str:
        """The best mean in a word: highest, or lowest where less is better."""
        return "lowest" if self.task.lower_is_better else "highest"

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible value: 0 to 1, -1 to 1, or 0 and more for errors."""
        if self.task.unit:
            unknown = 0.0 if self.task.unit == "%" else -1.0
            return unknown if self.task.lowest is None else self.task.lowest, 1.0
        return (0.0 if self.task.lower_is_better else -math.inf), math.inf

    @property
    def shown_bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible value in the unit that is shown."""
        lowest, highest = self.bounds
        return self.factor * lowest, self.factor * highest

    def cut(self, interval: tuple[float, float]) -> tuple[float, float]:
        """A confidence interval, cut to the metric's possible values."""
        lowest, highest = self.bounds
        return max(interval[0], lowest), min(interval[1], highest)

    def drawn(self, mean: float, interval: tuple[float, float] | None) -> tuple[float, float, float]:
        """A mean and the ends of its interval in the unit that is shown; without an interval both are the mean."""
        low, high = (mean, mean) if interval is None else self.cut(interval)
        return self.factor * mean, self.factor * low, self.factor * high

    def gain(self, difference: float) -> float:
        """A difference with the sign turned where lower is better, so that above zero is better."""
        return -difference if self.task.lower_is_better else difference

    def ranked(self, analysis: Analysis) -> list[str]:
        """Labels of recipes by the mean over seeds with pre-trained weights, the best first."""
        return sorted(analysis.pretrained, key=lambda label: -self.gain(analysis.pretrained[label].mean))

    def strongest(self, baselines: Iterable[Baseline]) -> list[Baseline]:
        """Baselines by their score on test, the best first; on a tie, the baseline that learns comes first."""
        metric = self.task.metric
        return sorted(baselines, key=lambda baseline: (-self.gain(baseline.test[metric]), baseline.kind == "simplest"))


def _finest(analysis: Analysis) -> float:
    """Half the width of the narrowest interval of a difference on a task; 0: there is none."""
    differences = [*analysis.pairs, *analysis.gains.values()]
    halves = [(each.interval[1] - each.interval[0]) / 2 for each in differences if each.interval is not None]
    return min((half for half in halves if half > 0), default=0.0)


def learned_baselines(results: Results, task: str) -> list[Baseline]:
    """The baselines of a task that learn without a neural network."""
    return [each for each in results.baselines if each.task == task and each.kind == "learned"]


def leading(measure: ShownMetric, analysis: Analysis) -> list[str]:
    """The best recipe and the next ones that cannot be told apart from it, up to the first that is worse.

    A recipe below one that is worse may have so much noise that it cannot be told apart either; it does not lead.
    """
    best, *others = measure.ranked(analysis)
    worse = {pair.second for pair in against_the_best(analysis, best) if pair.better}
    return [best, *takewhile(lambda label: label not in worse, others)]


def against_the_best(analysis: Analysis, best: str) -> list[Difference]:
    """The differences of the best recipe from the others."""
    return [pair for pair in analysis.pairs if pair.first == best]
