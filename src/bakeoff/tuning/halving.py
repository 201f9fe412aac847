"""Successive halving: at a quarter of their steps the better half of the trials goes on, at half of them most of those.

Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter optimization", in its
synchronous form: a decision waits for all its trials, so it does not depend on their speed. All trials follow the
schedule of their whole training, so that they are compared at the same point of it. Even so, a high learning rate gains
more than others while the rate falls: when half of the trials were stopped at the second evaluation as well, the best
trial of one recipe in three was among the stopped ones (docs/results.md).
"""

import math
from collections.abc import Sequence

from bakeoff.training.pretraining import validation_steps

EVALUATIONS = ((0.25, 0.5), (0.5, 0.75))
"""Each evaluation: the share of a trial's steps after which it may be stopped, and of the trials that goes on."""

FEWEST = 2
"""The fewest trials that go on, because the best is reported with its distance from the second best."""


def evaluations(validations: int, steps: Sequence[int]) -> list[list[int]]:
    """The steps after which each trial is compared with the others; the last is the trial's end.

    A training measures its held-out loss at these steps anyway; a short trial has fewer of them, or only its end.

    Args:
        validations: the recipe's `training.validations`.
        steps: number of steps of each trial.
    """
    compared: list[list[int]] = [[] for _ in steps]
    measured = [validation_steps(validations, each) for each in steps]
    for share, _ in EVALUATIONS:
        at = [next(step for step in marks if step >= share * each) for marks, each in zip(measured, steps, strict=True)]
        if all(
            step < each and (not marks or step > marks[-1])
            for step, each, marks in zip(at, steps, compared, strict=True)
        ):
            for marks, step in zip(compared, at, strict=True):
                marks.append(step)
    return [[*marks, each] for marks, each in zip(compared, steps, strict=True)]


def going_on(trials: int, evaluation: int) -> int:
    """The most of `trials` trials that are trained on after an evaluation; evaluations are numbered from 0."""
    for _, share in EVALUATIONS[: evaluation + 1]:
        trials = min(trials, max(FEWEST, math.ceil(trials * share)))
    return trials


def chosen(losses: Sequence[float | None], most: int) -> list[int]:
    """The indices of the `most` lowest losses, in rising order; a loss of None is never chosen."""
    finite = [(loss, index) for index, loss in enumerate(losses) if loss is not None]
    return sorted(index for _, index in sorted(finite)[:most])


def later_parts(evaluations_of: Sequence[Sequence[int]], evaluation: int) -> list[int]:
    """The steps of each part of a trial that may follow an evaluation, if as many trials as possible go on.

    Args:
        evaluations_of: for each trial, the steps of its evaluations.
        evaluation: the index of the evaluation.
    """
    parts: list[int] = []
    for later in range(evaluation + 1, len(evaluations_of[0])):
        each = sorted((steps[later] - steps[later - 1] for steps in evaluations_of), reverse=True)
        parts += each[: going_on(len(evaluations_of), later - 1)]
    return parts


def most_work(evaluations_of: Sequence[Sequence[int]]) -> float:
    """The highest cost of all trials together, in full trainings.

    Args:
        evaluations_of: for each trial, the steps of its evaluations.
    """
    total = 0.0
    for evaluation in range(len(evaluations_of[0])):
        trials = len(evaluations_of) if evaluation == 0 else going_on(len(evaluations_of), evaluation - 1)
        parts = [
            (steps[evaluation] - (steps[evaluation - 1] if evaluation else 0)) / steps[-1] for steps in evaluations_of
        ]
        total += sum(sorted(parts, reverse=True)[:trials])
    return total
