"""How much sooner one recipe reaches a held-out loss than another: ratios of tokens and of time, with verdicts.

Of recipes all of whose seeds reached the loss, the logarithms of what it took are compared, for what takes twice as
long with one seed takes about twice as long with all. Seeds alone are random here, so that the noise is that of seeds
in `bakeoff.comparison.statistics.noise`, moderated over recipes and corrected for all pairs as scores are. A loss is
known at validations alone: with g between the last two, log t has the variance (g / t)^2 / 12 by this grain, whatever
seeds say that end at the same one.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.pretraining_run import PretrainingRun
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.pairs import all_pairs
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.config import Config

Spent = Literal["tokens", "seconds"]
"""What a training takes to the loss."""


class TimeToLoss(Config):
    """The comparisons of what recipes of one kind of loss took to it."""

    spent: Spent
    """What is compared."""
    pairs: list[Difference]
    """The differences of natural logarithms: those of every two recipes, the quicker one first."""


def time_to_loss(runs: Mapping[str, Sequence[PretrainingRun]], spent: Spent, asking: Asking) -> TimeToLoss:
    """What recipes took, against each other.

    Args:
        runs: the pre-trainings of each recipe by label, all of which have reached the loss.
        spent: what is compared.
        asking: how the questions are asked.
    """
    groups = {label: _group(those, spent) for label, those in runs.items()}
    return TimeToLoss(spent=spent, pairs=all_pairs(groups, lower_is_better=True, asking=asking))


def _group(runs: Sequence[PretrainingRun], spent: Spent) -> Group:
    """The logarithms of what the seeds of a recipe took."""
    taken = {run.seed: float(np.log(getattr(run, spent))) for run in runs}
    grains = [
        (getattr(run.curve[-1], spent) - getattr(run.curve[-2], spent)) / getattr(run, spent)
        for run in runs
        if len(run.curve) > 1
    ]
    return Group(taken, (), float(np.mean(np.square(grains)) / 12) if grains else 0.0)
