"""How far the scores of a recipe differ from seed to seed, where a few seeds of several recipes are all that is known.

Three seeds say little of the variance of their recipe: a variance with 2 degrees of freedom is less than a tenth of the
truth in one case of ten. Smyth (2004, "Linear models and empirical Bayes methods", limma's `squeezeVar`) moderates each
by the others. The variances v_a of G recipes, with f degrees of freedom each, are draws around true ones whose inverses
are in turn draws from one scaled chi-square, with d0 degrees of freedom around the scale s0:

    e_a = log v_a - digamma(f / 2) + log(f / 2)
    trigamma(d0 / 2) = var(e) - trigamma(f / 2)                      no solution: d0 is infinite, all are equal
    log s0 = mean(e) + digamma(d0 / 2) - log(d0 / 2)
    v_a <- (d0 s0 + f v_a) / (d0 + f),  with d0 + f degrees of freedom

Two things are ours, for limma has thousands of genes and a comparison has two to some ten recipes. d0 is at most
`PRIOR_MOST` (G - 5/2) f, so that of two recipes nothing is moderated, and of three little. And a recipe that does not
fit the others is not drawn to them (Phipson et al. 2016 have a robust d0 for this): with p_a, the chance of a ratio as
large as v_a / s0 in the F distribution with f and d0 degrees of freedom, d0 and s0 fitted without it, its d0 is
multiplied by min(1, `FITTING` p_a). `benchmarks/verdicts.py` has chosen both numbers.

The recipes of a table are those with pre-trained weights on one task, or those from scratch. Tables that share d0, over
tasks or with the recipes from scratch, were tried: one whose recipes have equal spreads then makes another one sure of
it, and false claims rise from 5 to 7 % where spreads differ tenfold.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

PRIOR_MOST = 3.0
"""Most degrees of freedom of the prior, in parts of those of all recipes but two and a half."""
FITTING = 5.0
"""The prior of a recipe counts in whole down to a chance of 1 / `FITTING` of a variance as large as its own."""
INFINITE = 200.0
"""The degrees of freedom that count as infinitely many."""
SMALLEST = 0.05
"""The smallest part of its floor that a variance counts as where the prior is fitted; its logarithm would have none."""


class SeedVariance(NamedTuple):
    """The variance of a score over seeds."""

    variance: Array
    """The variance, moderated."""
    freedom: Array
    """Its degrees of freedom, with those of the prior."""


def moderated(variances: Array, freedom: Array, floors: Array) -> SeedVariance:
    """The variances of a table's recipes, each moderated by the others.

    Args:
        variances: (..., G) sample variances over seeds.
        freedom: (G,) their degrees of freedom.
        floors: (..., G) what is known to be in each variance: the noise of its test rows.
    """
    count = variances.shape[-1]
    most = min(INFINITE, PRIOR_MOST * (count - 2.5) * float(freedom.mean()))
    if most <= 0:
        return SeedVariance(np.maximum(variances, floors), np.broadcast_to(freedom.astype(float), variances.shape))
    logs = np.log(np.maximum(variances, SMALLEST * floors) + 1e-30) - special.digamma(freedom / 2) + np.log(freedom / 2)
    noise = special.polygamma(1, freedom / 2)
    mean = logs.mean(-1, keepdims=True)
    squares = ((logs - mean) ** 2).sum(-1, keepdims=True)
    prior, scale = _fitted(mean, squares / (count - 1) - noise.mean(), most)
    # Without a recipe the mean moves by its distance / (G - 1), and the squares lose distance^2 G / (G - 1).
    off = (logs - mean) / (count - 1)
    others = (noise.sum() - noise) / (count - 1)
    left = (squares - off**2 * count * (count - 1)) / (count - 2) - others
    without, scale_without = _fitted(mean - off, left, most)
    fits = special.fdtrc(freedom, without, variances / np.maximum(scale_without, 1e-300))
    prior = np.minimum(prior, without) * np.minimum(1, FITTING * fits)
    both = prior + freedom
    return SeedVariance(np.maximum((prior * scale + freedom * variances) / both, floors), both)


def _fitted(mean: Array, excess: Array, most: float) -> tuple[Array, Array]:
    """The prior's degrees of freedom and its scale.

    Args:
        mean: mean of the unbiased logarithms.
        excess: their variance, less what seeds alone make of it.
        most: the most degrees of freedom.
    """
    least = float(special.polygamma(1, most / 2))
    freedom = np.where(excess <= least, most, 2 * _inverse_trigamma(np.maximum(excess, least)))
    freedom = np.maximum(freedom, 1e-3)
    return freedom, np.exp(mean + special.digamma(freedom / 2) - np.log(freedom / 2))


def _inverse_trigamma(values: Array) -> Array:
    """The inverse of the trigamma function, by Newton's method on its reciprocal, which is convex (Smyth 2004)."""
    found = 0.5 + 1 / values
    for _ in range(20):
        at = special.polygamma(1, found)
        found = np.maximum(found + at * (1 - at / values) / special.polygamma(2, found), 1e-8)
    return np.asarray(found)
