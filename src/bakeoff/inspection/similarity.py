"""How alike the layers of two models are, by the vectors that they give the same texts.

Shapes: N texts, D width.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.runs.run import Run
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig

Vectors = NDArray[np.float32]


def layer_vectors(run: Run, texts: Sequence[str], device: str) -> list[Vectors]:
    """The (N, D) vectors of texts after each layer of a run, the input of the first one first: means over tokens.

    Of a model with an encoder and a decoder, the layers are the encoder's.

    Raises:
        UserError: the run gives texts no vectors.
    """
    return Embedder(run, VectorConfig(), device).of_each_layer(texts)


def debiased_cka(first: Vectors, second: Vectors) -> float:
    """The linear centred kernel alignment of two sets of vectors of the same N > 3 texts.

    It is 1 where one is a rotation of the other, and 0 on average where they have nothing in common, whatever their
    widths.

    Kornblith et al. 2019 (arXiv:1905.00414), with the unbiased estimate of the Hilbert-Schmidt independence criterion
    by Song et al. 2012, for vectors may be wider than there are texts: with K and L the matrices of inner products
    without their diagonals,

        HSIC(K, L) = (tr(K L) + 1'K1 1'L1 / ((N - 1) (N - 2)) - 2 1'K L 1 / (N - 2)) / (N (N - 3))
        CKA = HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))

    It is 0 where the vectors of one of both are all the same.
    """
    kernels = []
    for vectors in (first, second):
        centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
        kernel = centred @ centred.T
        np.fill_diagonal(kernel, 0.0)
        kernels.append(kernel)
    one, other = kernels
    both = _independence(one, one) * _independence(other, other)
    return _independence(one, other) / float(np.sqrt(both)) if both > 0 else 0.0


def _independence(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The unbiased criterion for kernels without their diagonals, but for its factor."""
    count, sums, others = len(one), one.sum(0), other.sum(0)
    found = (one * other).sum() + sums.sum() * others.sum() / ((count - 1) * (count - 2))
    return float(found - 2 * (sums @ others) / (count - 2))
