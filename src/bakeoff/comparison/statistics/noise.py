"""The noise of a weighted sum of mean scores: of a mean, of a difference, of a difference of gains, of a trend.

Of recipes with weights w_u, mean scores m_u over S seeds and n test rows in common, the sum d = sum_u w_u m_u has the
variance

    V   = V1 + V2
    V1  = sum_u w_u^2 v_u / S                  the seeds: variances of the seeds' scores (`seed_noise`)
    V2  = var_i(sum_u w_u x_ui) / n - R        the test set: x_ui is what row i contributes, mean over u's seeds
    R   = var(e_si) / (S n)                    what is drawn anew in each seed and row, which V1 has in it already
    df  = V^2 / (V1^2 / df1 + V2^2 / df2)      Satterthwaite (1946); df1 as of the largest parts of V1, df2 = n - 1;
                                               at most df2

with e_si the sum_u w_u x_usi without the means of its seed and of its row. V2 is never below zero, V never below R.
This is Clark's (1973) min F' for two samples, seeds and rows, but for the noise R, which min F' counts twice. Over
several tasks V2 is a sum over them, where each has rows of its own; tasks that share texts, such as two columns of
labels of one table, are one task with the rows of all, whose rows of one text are a cluster (`weighted`).

Satterthwaite alone fails where df2 is small, the clusters of rows being few: a V2 that is small by chance makes the
error small and the degrees of freedom large at once, and of many pairs one is always so. With two, three and five
clusters and eight equal recipes a table has false claims in 68, 35 and 17 % of cases. With the lesser of both degrees
of freedom a sum of two estimated variances is never too sure (Mickey and Brown 1966, "Bounds on the distribution
functions of the Behrens-Fisher statistic"): df2 bounds df. The bound is that of V2 alone, for rows that are independent
have it out of reach, and the V1 of a few seeds is moderated. Of several tasks the one with the fewest clusters counts.

Of variances that no other recipe moderates, with fewer than 4 degrees of freedom, R stays in V2 as min F' has it: V1 is
then so uncertain that what is known for sure, though counted twice, finds more.

Where the recipes have the same seeds, and the seeds are good or bad for all of them together, V1 loses the part that
recipes have in common (`in_common`): V1 = sum_uv w_u w_v rho_uv sqrt(v_u v_v) / S.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

from bakeoff.comparison.statistics.groups import Answers, Group, drawn_anew
from bakeoff.comparison.statistics.row_noise import RowNoise, row_noise
from bakeoff.comparison.statistics.seed_noise import Array
from bakeoff.config import Config

LEVEL = 0.05
"""The chance of a false claim that is accepted, for all claims of a family together."""

CAUTION = 1.2
"""By this p-values are multiplied and the levels of intervals divided. Degrees of freedom after Satterthwaite are an
approximation: without this, false claims are up to 6 % where spreads differ tenfold (`benchmarks/verdicts.py`)."""

FEWEST_TO_COUNT_ONCE = 4
"""The fewest degrees of freedom of variances that no other recipe moderates with which R counts once."""

COMMON_LEVEL = 0.01
"""The chance that seeds are taken for good or bad for all recipes alike where they are not."""

SEEDS_FOR_A_CLAIM = 3
"""The fewest seeds for a claim; a standard deviation over fewer says next to nothing."""


class Noise(Config):
    """The noise of a weighted sum of means, by its parts."""

    between: float
    """The variance that seeds alone make."""
    anew: float
    """The variance of what is drawn anew in each seed and row."""
    rows: float
    """The variance that rows alone make."""
    seed_freedom: float
    """Degrees of freedom of the first two parts."""
    row_freedom: float
    """Degrees of freedom of the last part."""
    most_freedom: float | None
    """The most degrees of freedom of the whole: those of the rows of the task with the fewest clusters; None: no rows
    are random."""
    seeds: int
    """The number of seeds; of several the smallest."""

    @property
    def variance(self) -> float:
        """The variance, above 0."""
        return self.between + self.anew + self.rows

    @property
    def error(self) -> float:
        """The standard error."""
        return float(np.sqrt(self.variance))

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom, at most `most_freedom`."""
        over_seeds = self.between + self.anew
        parts = over_seeds**2 / self.seed_freedom + self.rows**2 / self.row_freedom
        freedom = self.variance**2 / parts
        return freedom if self.most_freedom is None else min(freedom, self.most_freedom)

    def p(self, value: float) -> float:
        """The chance of a value at least as far from zero, if the truth were zero."""
        return min(1.0, CAUTION * 2 * float(special.stdtr(self.freedom, -abs(value) / self.error)))

    def p_within(self, value: float, margin: float) -> float:
        """The larger p-value of the two one-sided tests that the truth is `margin` or more away from zero."""
        return min(1.0, CAUTION * float(special.stdtr(self.freedom, (abs(value) - margin) / self.error)))

    def quantile(self, level: float) -> float:
        """The distance from zero whose p-value is `level`."""
        return -float(special.stdtrit(self.freedom, level / CAUTION / 2)) * self.error

    def around(self, value: float) -> tuple[float, float]:
        """The 95 % interval around a value."""
        half = self.quantile(LEVEL)
        return value - half, value + half

    def with_more(self, seeds: float = 1.0, rows: float = 1.0) -> "Noise":
        """The noise with some times as many seeds and rows, if the parts of variance stay as they are."""
        return Noise(
            between=self.between / seeds,
            anew=self.anew / seeds / rows,
            rows=self.rows / rows,
            seed_freedom=self.seed_freedom + (seeds - 1) * self.seeds,
            row_freedom=(self.row_freedom + 1) * rows - 1,
            most_freedom=None if self.most_freedom is None else (self.most_freedom + 1) * rows - 1,
            seeds=round(self.seeds * seeds),
        )


def noise_of(parts: Sequence[tuple[float, Group]], in_common: float = 0.0) -> Noise | None:
    """The noise of a weighted sum of groups' means; None: it cannot be known.

    Args:
        parts: groups with their weights, all on the same tasks.
        in_common: the correlation of scores by the same seeds.
    """
    seeds = min(len(group.scores) for _, group in parts)
    if seeds < SEEDS_FOR_A_CLAIM or any(each.by_seed.shape[1] < 2 for _, group in parts for each in group.answers):
        return None
    variances = [group.seed_variance for _, group in parts]
    shares = np.array([weight**2 * v.variance / len(g.scores) for (weight, g), v in zip(parts, variances, strict=True)])
    freedom = shares.sum() / (shares / [float(each.freedom) for each in variances]).sum() if shares.sum() > 0 else 1.0
    over_seeds = float(shares.sum())
    if in_common > 0:
        signed = np.sqrt(shares) * np.sign([weight for weight, _ in parts])
        over_seeds = in_common * float(signed.sum()) ** 2 + (1 - in_common) * over_seeds
    alone = all(v.freedom <= len(g.scores) - 1 for (_, g), v in zip(parts, variances, strict=True))
    twice = alone and freedom < FEWEST_TO_COUNT_ONCE
    anew = rows = weights = 0.0
    most = None
    for k in range(len(parts[0][1].answers)):
        those = [(weight, group.answers[k]) for weight, group in parts]
        part = _anew(parts, k)
        found = _of_rows(those)
        if found.freedom <= 0:
            return None
        beyond = found.variance if twice else max(found.variance - part, 0.0)
        most = found.freedom if most is None else min(most, found.freedom)
        anew, rows, weights = anew + part, rows + beyond, weights + beyond**2 / found.freedom
    between = max(over_seeds - anew, 0.0)
    if between + anew + rows <= 0:
        return None
    of_rows = rows**2 / weights if weights > 0 else 1.0
    return Noise(
        between=between,
        anew=anew,
        rows=rows,
        seed_freedom=float(freedom),
        row_freedom=of_rows,
        most_freedom=most,
        seeds=seeds,
    )


def _anew(parts: Sequence[tuple[float, Group]], task: int) -> float:
    """The variance of what is drawn anew in each seed and row of a task: jointly where the seeds are the same."""
    if len({tuple(group.scores) for _, group in parts}) == 1:
        together = sum(weight * group.answers[task].by_seed for weight, group in parts)
        assert not isinstance(together, int)
        return drawn_anew(together, parts[0][1].answers[task].clusters) / len(together)
    alone = [(weight, group.answers[task]) for weight, group in parts]
    return sum(weight**2 * drawn_anew(each.by_seed, each.clusters) / len(each.by_seed) for weight, each in alone)


def _of_rows(those: Sequence[tuple[float, Answers]]) -> RowNoise:
    """The noise of a weighted sum of contributions, for other test rows."""
    values = sum(weight * each.mean for weight, each in those)
    assert not isinstance(values, int)
    return row_noise(values, those[0][1].clusters, max(1.0, sum(abs(w) for w, _ in those) / 2) * _reach(those))


def _reach(those: Sequence[tuple[float, Answers]]) -> float:
    """The widest difference of two contributions; of a metric without bounds, such as an error, the largest of all."""
    if (known := those[0][1].reach) is not None:
        return known
    return max(float(np.abs(each.mean).max()) for _, each in those)


def in_common(groups: Sequence[Group]) -> float:
    """The correlation of scores by the same seeds, see `least_in_common`; 0 where the groups have other seeds.

    One training under several names counts once: that it agrees with itself says nothing of the others.
    """
    groups = [*{group.bits: group for group in groups}.values()]
    seeds = {tuple(group.scores) for group in groups}
    if len(seeds) != 1 or len(groups) < 2 or len(groups[0].scores) < SEEDS_FOR_A_CLAIM:
        return 0.0
    variances = np.array([float(group.seed_variance.variance) for group in groups])
    return float(least_in_common(np.array([list(group.scores.values()) for group in groups]), variances))


def least_in_common(scores: Array, variances: Array) -> Array:
    """The least correlation of scores by the same seeds that their analysis of variance allows, at the level of 1 %.

    With the scores of A groups in units of their deviation, F is the mean square of seeds over that of what is left.
    With F' = F / F(0.99; S - 1, (A - 1)(S - 1)) the correlation is (F' - 1) / (F' + A - 1), or 0 where F' is below 1.

    Args:
        scores: (..., A, S) the scores.
        variances: (..., A) their variances over seeds.
    """
    count, seeds = scores.shape[-2:]
    deviations = np.sqrt(np.maximum(variances, 1e-30))[..., None]
    units = (scores - scores.mean(-1, keepdims=True)) / deviations
    of_seeds = units.mean(-2, keepdims=True)
    left = ((units - of_seeds) ** 2).sum((-1, -2)) / ((count - 1) * (seeds - 1))
    ratio = count * (of_seeds**2).sum((-1, -2)) / (seeds - 1) / np.maximum(left, 1e-12)
    ratio = ratio / special.fdtri(seeds - 1, (count - 1) * (seeds - 1), 1 - COMMON_LEVEL)
    return np.asarray(np.maximum(0.0, (ratio - 1) / (ratio + count - 1)))
