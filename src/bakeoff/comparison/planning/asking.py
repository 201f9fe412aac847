"""How the questions of a table are asked: against whom, from which difference on, and how often."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, NamedTuple

from pydantic import Field

from bakeoff.errors import nearest

Margin = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Asking(NamedTuple):
    """How the questions of a table are asked."""

    margin: float | None = None
    """The difference from which on recipes are unlike; None: it is not asked whether any are equivalent."""
    baseline: str | None = None
    """The recipe with which alone the others are compared; None, or not in the table: every two are."""
    looks: int = 0
    """How many times verdicts were seen before more seeds were added."""

    @property
    def times(self) -> int:
        """The number by which p-values are multiplied for the looks before, see `times_for`."""
        return times_for(self.looks)


def times_for(looks: int) -> int:
    """The number by which p-values are multiplied after some looks: 1 without any, then 3, 4, 5.

    The second look shares its 5 % with a first one that had them all; with these numbers `benchmarks/verdicts.py` finds
    false claims at any of four looks in 5 % of cases at most.
    """
    return looks + 2 if looks else 1


def check_asked(
    margin: float | Mapping[str, float] | None,
    baseline: str | None,
    trends: Mapping[str, Sequence[str]],
    recipes: Sequence[str],
    tasks: Sequence[str],
) -> None:
    """Refuse questions on recipes and tasks that a plan does not have.

    Raises:
        ValueError: a name is unknown, an order has no name or too few recipes, or all scores are within the margin.
    """
    if baseline is not None:
        _require_known("baseline", baseline, recipes, "recipe")
        if len(recipes) == 1:
            raise ValueError("baseline: would have no effect: there is no other recipe")
    for name, labels in trends.items():
        if not name.strip():
            raise ValueError("trends: an order without a name; what grows along it, such as `width: [...]`?")
        for label in labels:
            _require_known(f"trends.{name}", label, recipes, "recipe")
        if len({*labels}) < max(3, len(labels)):
            raise ValueError(f"trends.{name}: an order takes three different recipes or more, not {[*labels]}")
    if isinstance(margin, float) and margin >= 100:
        raise ValueError(f"margin: within {margin:g} points are all scores; give fewer")
    if isinstance(margin, Mapping) and not margin:
        raise ValueError(f"margin: no task is named; give {{{tasks[0]}: ...}}, or leave it out")
    for task in margin if isinstance(margin, Mapping) else ():
        _require_known("margin", task, tasks, "task")


def _require_known(key: str, name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        raise ValueError(f"{key}: the plan has no {what} '{name}'{nearest(name, names)}")


def margin_of(
    margin: float | Mapping[str, float] | None, task: str | None, tasks: Sequence[str], unit: str
) -> float | None:
    """A plan's margin for a task, as a difference of the metric's values.

    Args:
        margin: the plan's margin, for all tasks or by the task's name; a number for all is in points, which an error
            in its own unit (nats, bits, points of a scale) does not have.
        task: the task's name; None: all tasks together, whose margin is the mean of theirs.
        tasks: the names of all tasks.
        unit: the unit of the metric: a margin is in points where it has one; "": the metric has its own.
    """
    if isinstance(margin, Mapping):
        together = fmean(margin.values()) if len(margin) == len(tasks) else None
        margin = together if task is None else margin.get(task)
    elif not unit:
        return None
    return None if margin is None else margin / 100 if unit else margin
