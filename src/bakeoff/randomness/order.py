"""The order in which a run sees its examples: a keyed permutation for each epoch, in constant memory."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bakeoff.randomness.draws import key_of, philox

STORED_BELOW = 65_536
"""Below this many examples the permutation is a stored shuffle: a Feistel network over few bits is not uniform."""

DRAWN_TOGETHER = 1 << 16
"""Number of a stored shuffle's random numbers that are drawn at a time, in memory that stays in the cache."""

FEISTEL_ROUNDS = 8
"""Number of rounds; four are measurably not uniform (chi-square over which example follows which)."""


def permute(positions: NDArray[np.int64], size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The examples at some positions of an epoch.

    Args:
        positions: (N,) positions in [0, size).
        size: number of examples in an epoch.
        seed: the run's seed.
        epoch: the epoch, each of which has its own permutation.

    Returns:
        (N,) example indices; over all positions each index in [0, size) occurs exactly once.
    """
    key = key_of(seed, epoch, "order")
    if size < STORED_BELOW:
        return _shuffle(size, key)[positions]
    return _feistel(positions, size, key)


def shuffle(size: int, key: int) -> NDArray[np.int64]:
    """(size,) the numbers below `size` in the order of a key; ten million take four seconds."""
    drawn = np.empty(size, np.uint64)
    for first in range(0, size, DRAWN_TOGETHER):
        counters = np.zeros((4, min(DRAWN_TOGETHER, size - first)), np.uint64)
        counters[0] = np.arange(first, first + counters.shape[1])
        words = philox(counters, key).astype(np.uint64)
        drawn[first : first + counters.shape[1]] = (words[0] << np.uint64(32)) | words[1]
    return np.argsort(drawn, kind="stable")


_shuffle = lru_cache(maxsize=4)(shuffle)


def _feistel(positions: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """A balanced Feistel network over the next even number of bits, walked until the value falls below size."""
    half = np.uint64(((size - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << int(half)) - 1)
    values = positions.astype(np.uint64)
    outside = np.ones(len(values), bool)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for index in range(FEISTEL_ROUNDS):
            counters = np.zeros((4, len(right)), np.uint64)
            counters[0], counters[1] = right, index
            # Six of Philox's ten rounds are enough here: eight such functions follow each other.
            left, right = right, left ^ (philox(counters, key, rounds=6)[0].astype(np.uint64) & mask)
        values[outside] = (left << half) | right
        outside[outside] = values[outside] >= size
    return values.astype(np.int64)


def examples_of(start: int, count: int, size: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The examples from a position of the endless sequence of epochs on.

    Args:
        start: position in the sequence of all epochs, e.g. step times batch size.
        count: number of examples to give.
        size: number of examples in an epoch.
        seed: the run's seed.

    Returns:
        (count,) example indices and (count,) the epoch of each.
    """
    positions = np.arange(start, start + count, dtype=np.int64)
    epochs, inside = np.divmod(positions, size)
    examples = np.empty(count, np.int64)
    for epoch in np.unique(epochs):
        rows = epochs == epoch
        examples[rows] = permute(inside[rows], size, seed, int(epoch))
    return examples, epochs
