"""A paired test of each recipe against the best method that learns without a neural network.

The baseline has no seeds: it says the same whenever it is fitted. Its score has the noise of the test rows alone, and a
recipe's gain over it that of the recipe's seeds and of the rows, on which both are paired.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.pairs import gains
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.tasks.scores.jackknife import Vector


def against_baseline(
    groups: Mapping[str, Group],
    name: str,
    score: float,
    contributions: Vector,
    clusters: NDArray[np.intp] | None,
    reach: float | None,
    looks: int = 0,
) -> dict[str, Difference]:
    """The difference of each recipe from a baseline, with p-values corrected for the number of recipes.

    Args:
        groups: the recipes with pre-trained weights, by label.
        name: the baseline's name.
        score: the baseline's score on test.
        contributions: (n,) contributions of the test rows to it; empty: not known.
        clusters: (n,) the number of the cluster of each test row; None: all rows are independent.
        reach: the distance of the metric's highest from its lowest value; None: it has no such bounds.
        looks: how many times verdicts were seen before more seeds were added.
    """
    always = {
        label: Group.of({seed: [(score, contributions)] for seed in group.scores}, clusters, reach)
        for label, group in groups.items()
    }
    answers = gains(groups, always, Asking(looks=looks))
    return {label: each.model_copy(update={"first": label, "second": name}) for label, each in answers.items()}
