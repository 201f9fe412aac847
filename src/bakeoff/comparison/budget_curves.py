"""Curves over the budget: what pre-trainings that ended early are worth, and from where they pay."""

from collections.abc import Callable, Sequence

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.results import RecipeEntry
from bakeoff.comparison.statistics.series import Series, SeriesPoint, series
from bakeoff.comparison.task_analysis import Analysis


def budget_curves(
    entries: Sequence[RecipeEntry],
    tasks: Sequence[TaskFacts],
    whole: Sequence[Analysis],
    analyse: Callable[[list[RecipeEntry]], Sequence[Analysis]],
    looks: int,
) -> list[Series]:
    """The curve of each task over shares of the budget; none where nothing was pre-trained with a share of it.

    Args:
        entries: the recipes.
        tasks: the tasks, and what was measured without fine-tuning.
        whole: the statistics of the whole budget, of each task.
        analyse: a function that gives the statistics of other scores, of each task that has any.
        looks: how many times verdicts were seen before more seeds were added.
    """
    shares = sorted({each.share for entry in entries for each in entry.checkpoints})
    ends = [*((share, analyse(_ended_at(entries, share))) for share in shares), (1.0, whole)]
    curves = []
    for facts in tasks:
        points = [
            SeriesPoint.of(100 * share, f"{100 * share:g} %", each)
            for share, of_share in ends
            for each in of_share
            if each.task == facts.name
        ]
        if len(points) > 1:
            curves.append(series(facts.name, "budget", points, facts.lower_is_better, looks))
    return curves


def _ended_at(entries: Sequence[RecipeEntry], share: float) -> list[RecipeEntry]:
    """The recipes with the scores after a share of the budget, and those from scratch."""
    ended = []
    for entry in entries:
        scratch = [score for score in entry.scores if score.initialisation == "scratch"]
        for each in entry.checkpoints:
            if each.share == share:
                those = {"scores": [*each.scores, *scratch], "measurements": each.measurements}
                ended.append(entry.model_copy(update=those))
    return ended
