"""Made-up answers for metrics that are no share of right answers, for `benchmarks/verdicts.py`."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from bakeoff.comparison.statistics.groups import Group
from bakeoff.tasks.scores.jackknife import of_classes, of_pearson, of_ratios, of_spearman

Array = NDArray[np.float64]
Scored = tuple[float, Array]
"""A score, and what each row contributes to it."""


def _classes(metric: str) -> Callable[[np.random.Generator, Array, Array], Scored]:
    def scored(random: np.random.Generator, truth: Array, noise: Array) -> Scored:
        labels = (truth > 0.84).astype(int)  # a fifth of the rows
        answers = (2 * labels - 1 + noise > 0.8).astype(int)
        score = (
            matthews_corrcoef(labels, answers) if metric == "matthews" else f1_score(labels, answers, average="macro")
        )
        return float(score), of_classes(labels, answers, metric)

    return scored


def _correlation(metric: str) -> Callable[[np.random.Generator, Array, Array], Scored]:
    def scored(random: np.random.Generator, truth: Array, noise: Array) -> Scored:
        given = truth + noise
        if metric == "pearson":
            return float(stats.pearsonr(truth, given)[0]), of_pearson(truth, given)
        return float(stats.spearmanr(truth, given)[0]), of_spearman(truth, given)

    return scored


def _spans(random: np.random.Generator, truth: Array, noise: Array) -> Scored:
    """F1 of spans: some in each row, found or not, and some that are not there."""
    there = np.floor(np.abs(2 * truth)).astype(int)
    hits = random.binomial(there, 1 / (1 + np.exp(-1 - 0.7 * noise)))
    given = hits + random.poisson(0.4, len(truth))
    score = 2 * hits.sum() / max(1, (there + given).sum())
    return float(score), of_ratios(2 * hits, there + given)


def _errors(random: np.random.Generator, truth: Array, noise: Array) -> Scored:
    """Absolute errors, which have no upper bound."""
    errors = np.abs(0.5 + noise) ** 1.5
    return float(errors.mean()), errors


METRICS: dict[str, Callable[[np.random.Generator, Array, Array], Scored]] = {
    "macro_f1": _classes("macro_f1"),
    "matthews": _classes("matthews"),
    "pearson": _correlation("pearson"),
    "spearman": _correlation("spearman"),
    "f1 of spans": _spans,
    "absolute error": _errors,
}
"""Scores from the truth of each row and the noise of each answer, by name."""


TAILS = 3
"""Degrees of freedom of Student's t, from which seeds with heavy tails are drawn."""
APART = 0.3
"""Standard deviation of what is a recipe's own in a cluster, in parts of a row's difficulty."""


def table(
    metric: str,
    random: np.random.Generator,
    spreads: tuple[float, ...],
    seeds: int,
    rows: int,
    *,
    tails: bool = False,
    together: int = 1,
) -> dict[str, Group]:
    """The groups of equal recipes.

    Args:
        metric: a name of `METRICS`.
        random: the generator of all that is random.
        spreads: the standard deviation of each recipe's seeds, in parts of a row's difficulty.
        seeds: number of seeds.
        rows: number of rows.
        tails: whether seeds have the tails of Student's t, scaled to the same deviation.
        together: number of neighbouring rows that are a cluster, in each of which recipes differ; 1: no clusters.
    """
    truth, difficulty = random.standard_normal(rows), random.standard_normal(rows)
    clusters = None if together == 1 else np.arange(rows) // together
    groups = {}
    for number, spread in enumerate(spreads):
        own = difficulty + 0.15 * random.standard_normal(rows)
        if clusters is not None:
            own = own + APART * random.standard_normal(clusters[-1] + 1)[clusters]
        runs = {}
        for seed in range(seeds):
            of_seed = random.standard_t(TAILS) / (TAILS / (TAILS - 2)) ** 0.5 if tails else random.standard_normal()
            noise = own + 1.1 * random.standard_normal(rows) + spread * of_seed
            runs[seed] = [METRICS[metric](random, truth, noise)]
        groups[str(number)] = Group.of(runs, clusters, None if metric == "absolute error" else 1.0)
    return groups
