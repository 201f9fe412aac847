"""Whitening: a linear map after which vectors have mean 0 and variance 1 along every direction.

Shapes: N texts, D width.
"""

import numpy as np
from numpy.typing import NDArray

FLAT = 1e-9
"""Share of the largest variance below which a variance counts as rounding."""


def whitening(vectors: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(D,) the mean m and (D, D) the matrix W = U S^(-1/2), with U S U^T the covariance of the vectors: (x - m) W.

    Su et al. 2021, arXiv:2103.15316, section 3. The states of language models differ most along a few directions that
    say little about the meaning; whitened, all directions have the same variance. Constant directions become 0.

    Args:
        vectors: (N, D) vectors of more than D different texts.
    """
    mean = vectors.mean(0, dtype=np.float64)
    apart = vectors - mean
    variances, directions = np.linalg.eigh(apart.T @ apart / (len(vectors) - 1))
    vary = variances > variances[-1] * FLAT
    scale = np.where(vary, 1 / np.sqrt(np.where(vary, variances, 1)), 0)
    matrix: NDArray[np.float64] = directions * scale
    return mean, matrix
