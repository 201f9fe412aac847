"""How far a mean over test rows would lie elsewhere with other rows, where some belong together or none differ.

Rows of one *cluster* (questions on one article, sentences of one document) are no independent examples: another test
set would have other clusters. With n rows in G clusters of n_g rows, contributions e_i and their mean,

    u_g  = sum of e_i - mean(e), over the rows of cluster g
    V    = (G / (G - 1) * sum(u_g^2) + 4 r^2 D^2) / n^2

which for rows that are clusters of their own is var(e) / n, but for the second term. That is what Agresti and Coull
(1998) add to a share: four more rows which differ as far as any may, by `r`, the range of a row's contribution. It
matters only where hardly any row differs: a variance of zero does not say that no row of the world would. D, 1 without
clusters, is how far rows of a cluster repeat each other: 1 + (m - 1) rho, for the size m of the cluster of a row and
the intraclass correlation rho (one-way analysis of variance), which counts as 1 where nothing varies.

Clusters of unlike sizes say less than as many equal ones. With v_g = n_g (1 + (n_g - 1) rho), what a cluster has of the
variance, the degrees of freedom are (sum v_g)^2 / sum(v_g^2) - 1, which is G - 1 for equal sizes (Satterthwaite).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.scores.jackknife import Vector

ADDED = 4.0
"""The number of rows of the widest difference that are added to the rows."""


class RowNoise(NamedTuple):
    """The estimated variance of a mean over test rows, for other rows of the same kind."""

    variance: float
    """The variance."""
    freedom: float
    """Its degrees of freedom; 0 or less: a single cluster, of which nothing follows."""


def row_noise(values: Vector, clusters: NDArray[np.intp] | None, reach: float) -> RowNoise:
    """The noise of the mean of some contributions.

    Args:
        values: (n,) contributions, or differences of contributions.
        clusters: (n,) the number of the cluster of each row, from 0 on; None: each row is a cluster of its own.
        reach: r, the widest difference of two contributions.
    """
    count, off = len(values), values - values.mean()
    if clusters is None:
        return RowNoise(float(off @ off / (count - 1) / count + ADDED * (reach / count) ** 2), count - 1)
    sizes = np.bincount(clusters)
    sums = np.bincount(clusters, off).astype(np.float64)
    rho = _intraclass_correlation(off @ off, sums, sizes)
    shares = sizes * (1 + (sizes - 1) * rho)
    repeated = 1 + (sizes @ sizes / count - 1) * rho
    between = len(sizes) / max(1, len(sizes) - 1) * float(sums @ sums)
    alone = count / max(1, count - 1) * float(off @ off)  # clusters whose sums happen to be near each other say no more
    variance = (max(between, alone) + ADDED * (reach * repeated) ** 2) / count**2
    return RowNoise(float(variance), float(shares.sum() ** 2 / (shares @ shares) - 1))


def _intraclass_correlation(squares: float, sums: Vector, sizes: NDArray[np.intp]) -> float:
    """The correlation of two rows of a cluster, from 0 to 1; 1 where no row differs from another.

    Args:
        squares: the sum of squares of all rows around their mean.
        sums: (G,) the sum of each cluster around that mean.
        sizes: (G,) the number of rows of each cluster.
    """
    count, groups = int(sizes.sum()), len(sizes)
    if squares <= 0 or groups < 2:
        return 1.0
    if groups == count:
        return 0.0
    between = float((sums**2 / sizes).sum())
    within = max(0.0, squares - between) / (count - groups)
    usual = (count - float(sizes @ sizes) / count) / (groups - 1)
    of_clusters = between / (groups - 1)
    below = of_clusters + (usual - 1) * within
    return float(np.clip((of_clusters - within) / below, 0, 1)) if below > 0 else 0.0
