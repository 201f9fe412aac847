"""Learning curves over labels: tasks that differ in nothing but how many rows of train there are to learn from."""

from collections import Counter
from collections.abc import Sequence

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.statistics.families import TaskGroups
from bakeoff.comparison.statistics.series import Series, SeriesPoint, series
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, quoted
from bakeoff.errors import UserError


def label_curves(
    plans: Sequence[TaskPlan], tasks: Sequence[TaskFacts], analyses: Sequence[Analysis], looks: int = 0
) -> list[Series]:
    """The curves over rows of train, with verdicts where they cross.

    Args:
        plans: the tasks of the plan, one for each number of rows.
        tasks: the facts of the same tasks.
        analyses: the statistics of the same tasks.
        looks: how many times verdicts were seen before more seeds were added.
    """
    curves: dict[str, list[SeriesPoint]] = {}
    lower: dict[str, bool] = {}
    for plan, facts, analysis in zip(plans, tasks, analyses, strict=True):
        if plan.point is not None and analysis.pretrained:
            rows = facts.rows["train"]
            point = SeriesPoint.of(rows, counted(rows, "row"), analysis)
            curves.setdefault(plan.point.curve, []).append(point)
            lower[plan.point.curve] = facts.lower_is_better
    return [series(name, "rows", points, lower[name], looks) for name, points in curves.items() if len(points) > 1]


def without_curves(plans: Sequence[TaskPlan], groups: Sequence[TaskGroups]) -> list[TaskGroups]:
    """The tasks, and of a curve over rows the point with the most of them: all points have the same test rows.

    Args:
        plans: the tasks of the plan, one for each number of rows.
        groups: the scores on the same tasks.
    """
    most: dict[str, TaskGroups] = {}
    for number, (plan, of_task) in enumerate(zip(plans, groups, strict=True)):
        name = f"{number}" if plan.point is None else f"curve {plan.point.curve}"
        if name not in most or most[name].task.rows["train"] < of_task.task.rows["train"]:
            most[name] = of_task
    return list(most.values())


def require_different_rows(plans: Sequence[TaskPlan], rows: Sequence[int]) -> None:
    """Refuse numbers of rows on a curve that are more than train has, or come to the same.

    Args:
        plans: the tasks of the plan, one for each number of rows.
        rows: the rows that each learns from.

    Raises:
        UserError: a point of a curve has too many rows, or two have the same.
    """
    curves: dict[str, list[int]] = {}
    for plan, there in zip(plans, rows, strict=True):
        if plan.point is not None:
            if plan.point.rows is not None and plan.point.rows > there:
                raise UserError(
                    f"task {quoted(plan.point.curve)}: train_rows: {plan.point.rows:,} are more than the "
                    f"{counted(there, 'row')} that can be learned from; `all` stands for these"
                )
            curves.setdefault(plan.point.curve, []).append(there)
    for name, of_curve in curves.items():
        for number, times in Counter(of_curve).items():
            if times > 1:
                raise UserError(
                    f"task {quoted(name)}: train_rows: {times} of them are the same {counted(number, 'row')}, all that "
                    "can be learned from; leave the others out"
                )
