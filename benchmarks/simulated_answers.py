"""Made-up answers of recipes whose truth is known, for `benchmarks/verdicts.py`.

An answer is right where a normal variable is above a threshold (probit). Parts of it are common to all recipes (the
row's difficulty, 1), a recipe's own in each row, drawn anew in each seed and row, and common to all rows of a seed. By
default they are as measured on the demo's predictions: little that is a recipe's own in a row, and more than half of
the variance drawn anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bakeoff.comparison.statistics.groups import Group

Array = NDArray[np.float64]

POINT = 0.043
"""Standard deviation of a seed, in parts of the row's difficulty, that is a point of accuracy at 70 %."""

AT_ONCE = 4_000_000
"""Answers that are made at once."""


class Tables(NamedTuple):
    """What verdicts need to know of T tables of answers, with A recipes, S seeds and n independent rows."""

    scores: Array
    """(T, A, S) the share of right answers."""
    rows: Array
    """(T, A, A) covariance over rows of the means over seeds."""
    anew: Array
    """(T, A, A) covariance of what is drawn anew in each seed and row."""
    count: int
    """n."""


@dataclass(frozen=True)
class World:
    """Recipes of which every truth is known."""

    accuracies: tuple[float, ...] = (0.7, 0.7)
    """Each recipe's accuracy over all seeds and rows."""
    seeds: int = 3
    rows: int = 500
    seed_spread: tuple[float, ...] | float = POINT
    """Standard deviation of a seed, for each recipe."""
    tails: int | None = None
    """Degrees of freedom of Student's t for the seeds; None: they are normal."""
    collapse: float = 0.0
    """The chance that a seed answers by chance."""
    in_common: float = 0.0
    """The correlation of the seeds of all recipes."""
    own: float = 0.15
    """Standard deviation of what is a recipe's own in a row."""
    anew: float = 1.1
    """Standard deviation of what is drawn anew in each seed and row."""
    sizes: tuple[int, ...] = ()
    """Rows of each cluster; empty: every row is a cluster of its own."""
    cluster_spread: float = 0.3
    """Standard deviation of what is a recipe's own in a cluster."""
    known: bool = True
    """Whether the verdict is told which rows are of one cluster."""
    luck: float = 0.0
    """Standard deviation of what all seeds of a recipe have in common by luck: its only pre-training, its search."""

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """(n,) the cluster of each row."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes) if self.sizes else None

    def answers(self, random: np.random.Generator, tables: int) -> Iterator[NDArray[np.bool_]]:
        """(T, A, S, n) whether each answer is right, in pieces of T tables."""
        count = len(self.accuracies)
        rows = self.rows if not self.sizes else sum(self.sizes)
        spread = np.broadcast_to(self.seed_spread, count)
        of_cluster = self.cluster_spread if self.sizes else 0.0
        scale = np.sqrt(1 + self.own**2 + self.anew**2 + spread**2 + of_cluster**2)
        threshold = norm.ppf(self.accuracies) * scale
        step = max(1, AT_ONCE // (count * self.seeds * rows))
        for begin in range(0, tables, step):
            size = min(step, tables - begin)
            seeds = self._seeds(random, (size, count, self.seeds)) * spread[:, None]
            seeds += random.normal(0, self.luck, (size, count, 1)) if self.luck else 0.0
            base = random.standard_normal((size, 1, rows), np.float32)
            base = base + np.float32(self.own) * random.standard_normal((size, count, rows), np.float32)
            if self.clusters is not None:
                base += random.normal(0, of_cluster, (size, count, len(self.sizes))).astype(np.float32)[
                    ..., self.clusters
                ]
            latent = random.standard_normal((size, count, self.seeds, rows), np.float32)
            latent *= np.float32(self.anew)
            latent += base[:, :, None]
            right = latent > -(seeds + threshold[:, None]).astype(np.float32)[..., None]
            if self.collapse:
                fallen = random.random((size, count, self.seeds, 1)) < self.collapse
                right = np.where(fallen, random.random(right.shape, np.float32) < 0.5, right)
            yield right

    def _seeds(self, random: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Seeds with a variance of 1."""
        drawn = random.standard_normal(shape)
        if self.tails is not None:
            drawn = random.standard_t(self.tails, shape) / np.sqrt(self.tails / (self.tails - 2))
        shared = random.standard_normal((shape[0], 1, shape[2]))
        return np.asarray(np.sqrt(self.in_common) * shared + np.sqrt(1 - self.in_common) * drawn)

    def tables(self, random: np.random.Generator, count: int, seeds: int | None = None) -> Tables:
        """What verdicts need to know of some tables of independent rows; `seeds`: of their first seeds alone."""
        scores, rows, anew = [], [], []
        for every in self.answers(random, count):
            right = every[:, :, :seeds]
            size = right.shape[-1]
            off = right.astype(np.float32)
            scores.append(right.mean(3))
            off -= scores[-1][..., None].astype(np.float32)
            mean = off.mean(2, dtype=np.float32)
            rows.append((mean @ mean.transpose(0, 2, 1) / (size - 1)).astype(np.float64))
            flat = (off - mean[:, :, None]).reshape(*mean.shape[:2], -1)
            anew.append((flat @ flat.transpose(0, 2, 1)).astype(np.float64) / ((right.shape[2] - 1) * (size - 1)))
        return Tables(np.concatenate(scores), np.concatenate(rows), np.concatenate(anew), size)

    def groups(self, random: np.random.Generator, count: int) -> Iterator[dict[str, Group]]:
        """The scores and contributions of some comparisons, one by one."""
        clusters = self.clusters if self.known else None
        for table in self.answers(random, count):
            for right in table.astype(np.float64):
                yield {
                    str(number): Group.of(
                        {seed: [(float(row.mean()), row)] for seed, row in enumerate(of)}, clusters, 1.0
                    )
                    for number, of in enumerate(right)
                }
