"""Which differences between recipes exceed the noise.

Two things are random in a comparison. A *seed*: another pre-training (other weights, order and masks) with its
fine-tuning gives another score. And the *test set*: other examples of the same kind give another score to the very
same models. A claim is about neither these seeds nor these examples, so it has to survive both.

The procedure. Of two recipes A and B with S seeds each and n test examples common to both:

    d    = mean score of A - mean score of B
    V1   = var_A / S_A + var_B / S_B           the seeds: sample variances of the seeds' scores
    V2   = var_i(x_Ai - x_Bi) / n              the test set: x_Ri is what example i contributes, mean over R's seeds
    t    = d / sqrt(V1 + V2)
    df   = (V1 + V2)^2 / (V1^2 / (min(S_A, S_B) - 1) + V2^2 / (n - 1))

V2 and n - 1 are those of independent examples; `bakeoff.comparison.row_noise` has them where examples belong together,
and says what is added to V2 so that no certainty comes of examples among which none differs.

This is Clark's (1973) min F', made for the same problem (subjects and words, both sampled), for two groups: seeds are
nested in recipes, examples are crossed with them. V2 contains some of what V1 contains, so it errs towards making no
claim. The degrees of freedom are Satterthwaite's (1946), save that the seeds count as min(S_A, S_B) - 1 rather than as
Welch's estimate: three seeds say too little about which recipe varies more. `benchmarks/verdicts.py` simulates what
this claims and finds (docs/results.md): of two to eight equal recipes a false difference in 0.3 to 2 % of tables, and
in 6 % at worst, of eight recipes with 3 seeds that deviate by three points.

A bootstrap over seeds and examples (Sellam et al. 2022, "The MultiBERTs", whose view of the two sources is the one
above) was not taken: resampling 3 seeds has 10 distinct outcomes and understates the variance by a third.

If the contributions of examples are not known, V2 is not known either, and nothing is claimed.

Several pairs are compared on a task, so the p-values are adjusted by Holm (1979): the chance that a task's table
contains any false claim is at most 5 %, whatever the other differences are. With fewer than 3 seeds nothing is claimed.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bakeoff.comparison.row_noise import row_noise
from bakeoff.config import Config
from bakeoff.tasks.scores.jackknife import Vector

LEVEL = 0.05
"""The chance of a false claim that is accepted, for all pairs of a task together."""

SEEDS_FOR_A_CLAIM = 3
"""The fewest seeds for a claim; a standard deviation over fewer says next to nothing."""


class Spread(Config):
    """The scores of a recipe on a task over seeds; the score of a seed is the mean of its nested fine-tunings."""

    seeds: dict[int, float]
    """The scores, by seed."""
    mean: float
    """Mean score over seeds."""
    deviation: float | None
    """Standard deviation over seeds (n - 1); None for one seed."""
    median: float
    """Median score over seeds."""
    low: float
    """The lowest score of any seed."""
    high: float
    """The highest score of any seed."""
    interval: tuple[float, float] | None
    """95 % confidence interval of the mean for other seeds and other test examples; None below 3 seeds."""


class Difference(Config):
    """The difference of two mean scores, and whether it exceeds the noise."""

    first: str
    """The label of the first recipe; in a gain, `pre-trained`."""
    second: str
    """The label of the second recipe; in a gain, `from scratch`."""
    difference: float
    """Mean of the first minus mean of the second, in the metric's direction: for errors, a negative value is a gain."""
    relative: float | None
    """The difference divided by the mean of the second; None: that mean is not above zero."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval of this difference alone; None below 3 seeds."""
    p: float | None = None
    """The p-value: the chance of a difference at least as large if the two were equal."""
    adjusted_p: float | None = None
    """The p-value after Holm's correction over all pairs of the task, or over all its gains."""
    real: bool | None = None
    """Whether the difference exceeds the noise; None: no claim can be made."""


@dataclass(frozen=True)
class Group:
    """The scores of one recipe on one task, by seed, with the contributions of the test examples."""

    scores: dict[int, float]
    """The metric by seed, mean over nested fine-tunings."""
    contributions: Vector
    """(n,) contributions of the test examples to the metric, mean over fine-tunings and seeds; empty: not known."""
    clusters: NDArray[np.intp] | None = None
    """(n,) the number of the cluster that each test example belongs to; None: all are independent."""
    reach: float | None = None
    """The distance of the metric's highest from its lowest value; None: it has no such bounds."""

    @classmethod
    def of(
        cls,
        runs: Mapping[int, Sequence[tuple[float, Vector]]],
        clusters: NDArray[np.intp] | None = None,
        reach: float | None = None,
    ) -> "Group":
        """A group averaged inside each seed first, because the fine-tunings of one seed are not independent.

        Args:
            runs: the score and the contributions of each fine-tuning, by seed.
            clusters: see the field.
            reach: see the field.
        """
        scores = {seed: float(np.mean([score for score, _ in nested])) for seed, nested in runs.items()}
        inside = [np.mean([values for _, values in nested], axis=0) for nested in runs.values()]
        return cls(scores, np.mean(inside, axis=0), clusters, reach)

    @property
    def mean(self) -> float:
        """Mean score over seeds."""
        return float(np.mean(list(self.scores.values())))

    @property
    def variance_of_mean(self) -> float:
        """Estimated variance of the mean over seeds."""
        return float(np.var(list(self.scores.values()), ddof=1) / len(self.scores))


def describe(group: Group) -> Spread:
    """Mean, median, spread and, from 3 seeds on, a confidence interval of a group's scores."""
    values = list(group.scores.values())
    noise = _noise([group], group.contributions)
    return Spread(
        seeds=group.scores,
        mean=group.mean,
        deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        median=float(np.median(values)),
        low=min(values),
        high=max(values),
        interval=None if noise is None else noise.around(group.mean),
    )


def difference(first: str, a: Group, second: str, b: Group) -> Difference:
    """The difference of two groups on the same test examples, before any correction for several pairs."""
    d = a.mean - b.mean
    figures = {
        "first": first,
        "second": second,
        "difference": d,
        "relative": d / b.mean if b.mean > 0 else None,
    }
    noise = _noise([a, b], a.contributions - b.contributions)
    if noise is None:
        return Difference(**figures)
    p = float(2 * stats.t.sf(abs(d) / noise.error, noise.freedom))
    return Difference(**figures, interval=noise.around(d), p=p)


class _Noise(NamedTuple):
    """The noise of a mean, or of a difference of means, from seeds and test examples together."""

    error: float
    """The standard error, above 0."""
    freedom: float
    """Satterthwaite's degrees of freedom."""

    def around(self, value: float) -> tuple[float, float]:
        """The 95 % interval around a value."""
        half = float(stats.t.ppf(1 - LEVEL / 2, self.freedom)) * self.error
        return value - half, value + half


def _noise(groups: Sequence[Group], examples: Vector) -> _Noise | None:
    """The noise of a group's mean, or of the difference of two; None: it cannot be known.

    Args:
        groups: the group, or both.
        examples: (n,) contributions of the test examples, or their differences.
    """
    seeds = min(len(each.scores) for each in groups)
    if seeds < SEEDS_FOR_A_CLAIM or len(examples) < 2:
        return None
    over_seeds = sum(each.variance_of_mean for each in groups)
    rows = row_noise(examples, groups[0].clusters, widest_reach(groups))
    variance = over_seeds + rows.variance
    if rows.freedom <= 0 or variance <= 0:
        return None
    freedom = variance**2 / (over_seeds**2 / (seeds - 1) + rows.variance**2 / rows.freedom)
    return _Noise(float(np.sqrt(variance)), float(freedom))


def widest_reach(groups: Sequence[Group]) -> float:
    """The widest difference of two contributions; of a metric without bounds, such as an error, the largest of all."""
    if (known := groups[0].reach) is not None:
        return known
    return max(float(np.abs(each.contributions).max()) for each in groups)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values: sorted ascending, the k-th of m (from 0) times m - k, and never decreasing."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for k, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - k)))
        adjusted[i] = highest
    return adjusted


def decide(differences: Sequence[Difference]) -> list[Difference]:
    """The differences of one table, each with a verdict whether it exceeds the noise; no verdict without a p-value."""
    tested = [item for item in differences if item.p is not None]
    adjusted = dict(zip(map(id, tested), holm([item.p for item in tested if item.p is not None]), strict=True))
    return [
        item.model_copy(update={"adjusted_p": adjusted[id(item)], "real": adjusted[id(item)] < LEVEL})
        if id(item) in adjusted
        else item
        for item in differences
    ]


def all_pairs(groups: Mapping[str, Group], lower_is_better: bool = False) -> list[Difference]:
    """The differences of every two recipes, the better one first, with p-values corrected for the number of pairs."""
    sign = 1 if lower_is_better else -1
    ranked = sorted(groups, key=lambda label: sign * groups[label].mean)
    return decide([difference(a, groups[a], b, groups[b]) for a, b in itertools.combinations(ranked, 2)])


def gains(pretrained: Mapping[str, Group], scratch: Mapping[str, Group]) -> dict[str, Difference]:
    """The differences between pre-trained and random weights, by recipe, with p-values corrected for their number."""
    both = [label for label in pretrained if label in scratch]
    differences = [difference("pre-trained", pretrained[label], "from scratch", scratch[label]) for label in both]
    return dict(zip(both, decide(differences), strict=True))
