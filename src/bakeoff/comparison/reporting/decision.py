"""What a score costs: latency, parameters, memory and training of each recipe, and which recipes are worth their cost.

A recipe is on the Pareto front of score and a cost if no other one has at least its score at no more of the cost, and
more of the one or less of the other.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from bakeoff.comparison.reporting.measures import ShownMetric, against_the_best, learned_baselines
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, duration, memory, quantity, quoted


class Cost(NamedTuple):
    """One kind of cost, of which less is better."""

    name: str
    """The key of the cost in `Choice.costs`."""
    column: str
    """The cost as the name of a column."""
    title: str
    """The cost with its unit, for an axis."""
    unit: float
    """The unit of the axis."""
    shown: Callable[[float], str]
    """The function that makes a cell of a value."""
    least: str
    """The words for the recipe with the least of it: the quickest."""
    noise: float = 0.0
    """The share by which two measurements of equal recipes may differ; less than that is no difference of cost."""
    grain: float = 0.0
    """The amount by which they may differ besides, in the measured unit."""

    def less(self, one: float, other: float) -> bool:
        """Whether one cost is less than another by more than the noise of measuring them."""
        return one * (1 + self.noise) + self.grain < other


def milliseconds(value: float) -> str:
    """Seconds in milliseconds, with three digits: 0.01234 as 12.3 ms."""
    shown = 1000 * value
    return f"{shown:,.0f} ms" if shown >= 100 else f"{shown:.3g} ms"


COSTS = (
    Cost("latency", "latency", "latency, ms", 1e-3, milliseconds, "the quickest", 0.05),
    Cost("parameters", "parameters", "parameters, millions", 1e6, quantity, "the smallest"),
    Cost(
        "memory",
        "memory",
        "memory that pre-training took, MiB",
        2.0**20,
        memory,
        "the one with the least memory",
        0.05,
        64 * 2.0**20,  # equal trainings differ by as much, since what is loaded once counts for the first of a process
    ),
    Cost("training", "pre-training", "time of pre-training, minutes", 60.0, duration, "the one trained quickest", 0.05),
)
"""The costs in the order of columns and charts."""


QUICKER = 0.9
"""The most of the best recipe's latency with which another is called quicker; medians vary by some percent."""


class Choice(NamedTuple):
    """A recipe, or a baseline that learns, with its score on a task and its costs."""

    label: str
    """The recipe's label, or the name of the baseline."""
    score: float
    """The mean over seeds of the task's metric on test."""
    costs: dict[str, float]
    """The known costs, by name, see `COSTS`."""
    level: bool | None
    """Whether it is the best recipe or as good: with a margin equivalent to it, without one not to be told apart;
    None: no claim can be made."""
    is_recipe: bool = True
    """Whether it is a recipe."""


def front(points: Sequence[tuple[float, float]], less: Callable[[float, float], bool] = operator.lt) -> list[bool]:
    """Whether each of some points (cost, value) is on the Pareto front, with less cost and more value better.

    `less` says whether one cost is less than another; costs of which neither is are equal.
    """
    return [
        not any(
            not less(cost, other[0]) and other[1] >= value and (less(other[0], cost) or other[1] > value)
            for other in points
        )
        for cost, value in points
    ]


def choices(results: Results, analysis: Analysis) -> list[Choice]:
    """The recipes of a task and the baselines that learn, the best first."""
    measure = ShownMetric.of(results, analysis.task)
    best = measure.ranked(analysis)[0]
    compared = against_the_best(analysis, best)
    pairs = [pair for pair in compared if pair.real is not None]
    # With a `baseline` in the plan, recipes are compared with it alone: others may be as good as the best one, too.
    everyone = len(compared) == len(analysis.pretrained) - 1
    known = {pair.second: _level(pair) for pair in pairs} | {best: True} if pairs and everyone else {}
    entries = {entry.label: entry for entry in results.recipes}
    made = [
        Choice(
            label,
            spread.mean,
            costs(results, entries[label], analysis.task),
            known.get(label),
        )
        for label, spread in analysis.pretrained.items()
    ]
    made += [
        Choice(
            each.name,
            each.test[measure.task.metric],
            {} if each.seconds is None else {"latency": each.seconds},
            None,
            is_recipe=False,
        )
        for each in learned_baselines(results, analysis.task)
    ]
    return sorted(made, key=lambda choice: -measure.gain(choice.score))


def _level(pair: Difference) -> bool:
    """Whether the second recipe, the worse one, is as good as the first for a choice between them."""
    return not pair.better if pair.margin is None else pair.equivalent


def as_good(measure: ShownMetric, analysis: Analysis, best: str) -> str:
    """The end of a sentence on recipes that are as good as the best one, which it calls `best`."""
    if analysis.margin is None:
        return f"cannot be told apart from {best}"
    return f"are within {measure.size(analysis.margin)}{measure.steps} of {best}"


def costs(results: Results, entry: RecipeEntry, task: str) -> dict[str, float]:
    """The costs of a recipe on a task that are known, by name."""
    latency = next((each for each in results.latencies if (each.recipe, each.task) == (entry.label, task)), None)
    known = {
        "latency": None if latency is None else latency.seconds,
        "parameters": entry.parameters if latency is None else latency.parameters,
        "memory": entry.memory,
        "training": fmean(run.seconds for run in entry.runs) if entry.runs else None,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def on_front(measure: ShownMetric, those: Sequence[Choice], cost: str) -> set[str]:
    """The labels of the choices on the Pareto front of the score and a cost; choices without the cost are left out."""
    known = [each for each in those if cost in each.costs]
    marks = front([(each.costs[cost], measure.gain(each.score)) for each in known], _cost(cost).less)
    return {each.label for each, mark in zip(known, marks, strict=True) if mark}


def cheapest(measure: ShownMetric, those: Sequence[Choice], cost: str) -> Choice | None:
    """The recipe with the least cost of those that are as good as the best (`Choice.level`); None: there is no claim.

    Of costs that are equal but for the noise of measuring them, the better one.
    """
    level = _level_at(those, cost)
    least, less = min((each.costs[cost] for each in level), default=0.0), _cost(cost).less
    equal = [each for each in level if not less(least, each.costs[cost])]
    return max(equal, key=lambda each: measure.gain(each.score), default=None)


def _level_at(those: Sequence[Choice], cost: str) -> list[Choice]:
    """The recipes that are as good as the best and whose cost is known."""
    return [each for each in those if each.is_recipe and each.level and cost in each.costs]


def _cost(name: str) -> Cost:
    return next(each for each in COSTS if each.name == name)


def decisions(results: Results) -> Iterator[str]:
    """A sentence for each task: the cheapest recipe that is as good as the best, by latency."""
    cost = COSTS[0]
    for analysis in results.analyses:
        measure = ShownMetric.of(results, analysis.task)
        those = choices(results, analysis)
        recipes = [each for each in those if each.is_recipe]
        chosen, best = cheapest(measure, those, cost.name), recipes[0]
        if chosen is None or cost.name not in best.costs or len(recipes) < 2:
            continue
        start = f"On {quoted(analysis.task)}, {quoted(chosen.label)}"
        if chosen is not best and chosen.costs[cost.name] > QUICKER * best.costs[cost.name]:
            continue
        texts = "a text" if results.latency.batch == 1 else f"for {counted(results.latency.batch, 'text')}"
        spent = f"{cost.shown(chosen.costs[cost.name])} {texts}"
        if chosen is best:
            level = [each.costs[cost.name] for each in _level_at(recipes, cost.name)]
            if len(level) > 1 and best.costs[cost.name] <= min(level):  # and not by the noise alone
                others = as_good(measure, analysis, "it")
                yield f"{start} has the {measure.extreme} mean and is, of those that {others}, {cost.least}: {spent}."
            continue
        yield (
            f"{start} is {cost.least} of the recipes that {as_good(measure, analysis, 'the best')}: {spent}, where "
            f"{quoted(best.label)} needs {cost.shown(best.costs[cost.name])}."
        )
