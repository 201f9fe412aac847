"""Families of questions beyond the pairs of a task: gains, orders, all tasks together, and one task against another.

Each is a weighted sum of mean scores with the noise of `bakeoff.comparison.statistics.noise`, and each family has a
correction of its own:

- *gain against gain*: (A pre-trained - A from scratch) - (B pre-trained - B from scratch), for all pairs of a task;
- *from scratch*: the pairs of a task as for pre-trained recipes, of the same models from random weights;
- *trend*: for K recipes in an order, the slope of the line through their means, times K - 1: the rise from the first to
  the last, which finds what grows steadily and no neighbours need show (Abelson and Tukey 1963 have it as a contrast);
- *over tasks*: the pairs, gains and so on of the mean score over tasks, seed by seed, for tasks are the same for all;
- *interaction*: (A - B on one task) - (A - B on another), for all pairs of recipes and tasks.

Tasks whose metric is neither in percent nor times 100 have no unit in common with others, and are left out of the last
two.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.statistics.groups import Group, moderate, weighted
from bakeoff.comparison.statistics.noise import in_common
from bakeoff.comparison.statistics.pairs import all_pairs, describe, factors_of, gains, pairs_of
from bakeoff.comparison.statistics.questions import Difference, Interaction, Question, answers_to
from bakeoff.comparison.task_analysis import Analysis

OVER_TASKS = "all tasks"
"""The name of the analysis over tasks."""


class TaskGroups(NamedTuple):
    """The scores of all recipes on one task."""

    task: TaskFacts
    """The facts of the task."""
    pretrained: dict[str, Group]
    """Recipes with pre-trained weights, by label."""
    scratch: dict[str, Group]
    """Recipes from scratch, by label."""


def gain_pairs(
    pretrained: Mapping[str, Group], scratch: Mapping[str, Group], lower_is_better: bool, asking: Asking
) -> list[Difference]:
    """The differences of recipes' gains, the larger gain first."""
    pretrained, scratch = moderate(pretrained), moderate(scratch)
    sign = 1 if lower_is_better else -1
    both = [label for label in pretrained if label in scratch]
    ranked = sorted(both, key=lambda label: sign * (pretrained[label].mean - scratch[label].mean))
    questions = [
        Question(a, b, [(1.0, pretrained[a]), (-1.0, scratch[a]), (-1.0, pretrained[b]), (1.0, scratch[b])])
        for a, b in pairs_of(ranked, asking.baseline)
    ]
    return answers_to(questions, factors_of(ranked, asking.baseline), asking)


def trends(groups: Mapping[str, Group], orders: Mapping[str, Sequence[str]], asking: Asking) -> dict[str, Difference]:
    """The rise along each order of recipes, of which three or more have scores, by its name."""
    groups = moderate(groups)
    questions = {}
    for name, labels in orders.items():
        there = [label for label in labels if label in groups]
        if len(there) > 2:
            place = np.arange(len(there)) - (len(there) - 1) / 2
            weights = place * (len(there) - 1) / (place @ place)
            parts = [(float(weight), groups[label]) for weight, label in zip(weights, there, strict=True)]
            common = in_common([group for _, group in parts])
            questions[name] = Question(there[-1], there[0], parts, common, groups[there[0]].mean)
    return dict(zip(questions, answers_to([*questions.values()], asking=asking), strict=True))


def shown_in_points(tasks: Sequence[TaskGroups]) -> list[TaskGroups]:
    """The tasks whose metric is in percent or times 100."""
    return [each for each in tasks if each.task.unit]


def over_tasks(tasks: Sequence[TaskGroups], orders: Mapping[str, Sequence[str]], asking: Asking) -> Analysis | None:
    """The statistics of the mean score over tasks; None: fewer than two have points.

    Args:
        tasks: the groups of all tasks.
        orders: recipes in an order, by its name.
        asking: how the questions are asked.
    """
    tasks = shown_in_points(tasks)
    if len(tasks) < 2:
        return None
    weights = [(-1 if each.task.lower_is_better else 1) / len(tasks) for each in tasks]
    pretrained = _together(weights, [each.pretrained for each in tasks])
    scratch = _together(weights, [each.scratch for each in tasks])
    return Analysis(
        task=OVER_TASKS,
        pretrained={label: describe(group) for label, group in pretrained.items()},
        scratch={label: describe(group) for label, group in scratch.items()},
        pairs=all_pairs(pretrained, asking=asking),
        scratch_pairs=all_pairs(scratch, asking=asking),
        gains=gains(pretrained, scratch, asking),
        gain_pairs=gain_pairs(pretrained, scratch, False, asking),
        trends=trends(pretrained, orders, asking),
    )


def interactions(tasks: Sequence[TaskGroups], asking: Asking) -> list[Interaction]:
    """How far the differences of recipes are other ones on another task, with one correction for all of them."""
    places, questions = [], []
    for one, other in itertools.combinations(shown_in_points(tasks), 2):
        signs = [-1.0 if each.task.lower_is_better else 1.0 for each in (one, other)]
        apart = _together([signs[0], -signs[1]], [one.pretrained, other.pretrained])
        common = in_common(list(apart.values()))
        for a, b in pairs_of(sorted(apart, key=lambda label: -apart[label].mean), asking.baseline):
            questions.append(Question(a, b, [(1.0, apart[a]), (-1.0, apart[b])], common))
            places.append((one.task.name, other.task.name))
    answers = answers_to(questions, asking=asking)
    return [
        Interaction(**answer.model_dump(), task=task, other=other)
        for answer, (task, other) in zip(answers, places, strict=True)
    ]


def _together(weights: Sequence[float], tasks: Sequence[Mapping[str, Group]]) -> dict[str, Group]:
    """The weighted sums over tasks of the recipes that have scores on all of them, with seeds in common."""
    labels = [label for label in tasks[0] if all(label in each for each in tasks)]
    sums = {label: weighted([(w, each[label]) for w, each in zip(weights, tasks, strict=True)]) for label in labels}
    return moderate({label: group for label, group in sums.items() if group.scores})
