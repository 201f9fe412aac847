"""Vectors of tokens by what stands beside them in a text, for a model to begin with.

With C[v, w] the number of times that w stands at most `window` tokens after v, each counted as 1 / distance, and with
the context counts raised to 3/4 (Levy, Goldberg and Dagan 2015, "Improving distributional similarity", section 3),

    PPMI(C)[v, w] = max(0, log(C[v, w] / (C[v, .] q[w]))),    q[w] = C[., w]^(3/4) / sum_u C[., u]^(3/4)
    [PPMI(C), PPMI(C^T)] = U S X^T                            what follows a token beside what precedes it
    vectors = U S^(1/2)                                       of the largest singular values, as many as the width

The vectors are centred, made equally long, and turned by a random rotation of the seed, so that no number of a vector
means more than another, and seeds differ.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split

MOST_TOKENS = 20_000_000
"""Tokens of a text that are counted, from its beginning; more would not fit a laptop's memory beside a training."""

_CHUNK = 1 << 22
"""Tokens that are counted at once, which bounds the memory for their pairs."""

_DENSE = 1024
"""The largest vocabulary whose singular vectors are computed all; of larger ones only those of the largest values, by
random projections."""

_SPARE = 4
"""One more random direction for so many that are wanted (Halko, Martinsson and Tropp 2011, arXiv:0909.4061)."""

_ITERATIONS = 3
"""Products with the matrix and back that turn random directions towards the largest singular values. Of 8,192 tokens
the 50th is then right to half a hundredth and the 128th to a twelfth, in a quarter of the time of all digits."""

_ROUNDING = 1e-9
"""What rounding may have made of nothing: of information, of a length, of a share of the largest singular value."""

_SMOOTHING = 0.75
"""The power of the counts of contexts."""


def counted_tokens(split: Split) -> int:
    """The number of a text's tokens whose neighbours are counted."""
    return min(len(split.tokens), MOST_TOKENS)


def neighbour_vectors(
    texts: Sequence[tuple[Split, float]], vocabulary: int, width: int, window: int, seed: int
) -> NDArray[np.float32]:
    """(V, width) vectors of length 1 of the tokens of texts; zeros for those of which nothing is known.

    Args:
        texts: the texts, each with its share of what is read.
        vocabulary: V, the number of tokens.
        width: the number of a vector's numbers.
        window: the farthest distance of neighbours.
        seed: the seed of the rotation.
    """
    found = _singular(_followed(texts, vocabulary, window), width)
    seen = np.linalg.norm(found, axis=1) > _ROUNDING
    if seen.any():
        found[seen] -= found[seen].mean(axis=0)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    found = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > _ROUNDING)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
    turned: NDArray[np.float64] = found @ rotation
    return turned.astype(np.float32)


def _followed(texts: Sequence[tuple[Split, float]], vocabulary: int, window: int) -> Any:
    """(V, V) sparse: how often the second token follows the first, by 1 / distance, in all texts by their shares."""
    from scipy import sparse

    counts = sparse.csr_array((vocabulary, vocabulary))
    for split, share in texts:
        length = counted_tokens(split)
        for start in range(0, length, _CHUNK):
            for distance, first, second in _pairs(split, start, min(start + _CHUNK, length), window):
                weights = np.full(len(first), share / length / distance)
                counts += sparse.coo_array((weights, (first, second)), shape=counts.shape).tocsr()
    return counts


def _pairs(
    split: Split, start: int, end: int, window: int
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """The neighbours in one document, or one side of a pair, of which the first is one of these tokens.

    Returns:
        each distance with the first and the second tokens.
    """
    bounds = split.sentences if split.pairs else split.documents
    tokens = np.asarray(split.tokens[start : min(end + window, len(split.tokens))]).astype(np.int64)
    places = np.searchsorted(bounds, np.arange(start, start + len(tokens)), side="right")
    for distance in range(1, window + 1):
        first = np.arange(min(end - start, len(tokens) - distance))
        first = first[places[first] == places[first + distance]]
        yield distance, tokens[first], tokens[first + distance]


def _singular(counts: Any, width: int) -> NDArray[np.float64]:
    """(V, width) left singular vectors, those of the largest singular values first, times the roots of these.

    Tokens that the text lacks are left out of the decomposition, and have zeros, as have directions that it lacks.
    """
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    both = sparse.hstack([_positive_information(counts), _positive_information(counts.T.tocsr())]).tocsr()
    there = np.flatnonzero(np.diff(both.indptr))
    found = np.zeros((both.shape[0], width))
    if not len(there):
        return found
    if len(there) <= _DENSE:
        left, values, _ = np.linalg.svd(both[there].toarray(), full_matrices=False)
    else:
        known, most = both[there].astype(np.float32), min(width, len(there))
        spare = width // _SPARE
        left, values, _ = randomized_svd(known, most, n_oversamples=spare, n_iter=_ITERATIONS, random_state=0)
    values = np.where(values > _ROUNDING * values.max(), values, 0.0)
    scaled = (left * np.sqrt(values))[:, :width]
    found[there, : scaled.shape[1]] = scaled
    return found


def _positive_information(counts: Any) -> Any:
    """PPMI, (V, V) sparse: how much more often two tokens are neighbours than by chance, in nats, where they are."""
    from scipy import sparse

    rows = np.asarray(counts.sum(axis=1)).ravel()
    contexts = np.asarray(counts.sum(axis=0)).ravel() ** _SMOOTHING
    there = counts.tocoo()
    first, second = there.coords
    information = np.log(there.data / rows[first] / (contexts[second] / contexts.sum()))
    more = information > _ROUNDING
    return sparse.coo_array((information[more], (first[more], second[more])), shape=counts.shape).tocsr()
