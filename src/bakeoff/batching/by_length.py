"""Batches of rows of similar length, so that few positions are padding: sorted, or in another order in every epoch."""

import numpy as np
from numpy.typing import NDArray

from bakeoff.lengths import by_length
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute

BATCHES_SORTED = 16
"""The number of shuffled batches within which rows are sorted by length: batches with little padding that still differ
from epoch to epoch."""


def sorted_batches(lengths: NDArray[np.int64], tokens: int, most: int | None = None) -> list[NDArray[np.int64]]:
    """The indices of the rows of each batch, the longest rows first.

    Args:
        lengths: (N,) number of tokens of each row.
        tokens: the largest number of tokens of a batch of two rows or more, padding included.
        most: the largest number of rows of a batch; None: any number.
    """
    order = by_length(lengths, longest_first=True)
    batches, first = [], 0
    while first < len(order):
        count = max(1, tokens // max(1, int(lengths[order[first]])))
        count = count if most is None else min(most, count)
        batches.append(order[first : first + count])
        first += count
    return batches


def shuffled_batches(lengths: NDArray[np.int64], batch: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """The indices of the rows of each batch of an epoch; every row comes once.

    Args:
        lengths: (N,) the number of tokens of each row.
        batch: the rows of a batch; one batch of the epoch may have fewer.
        seed: the run's seed.
        epoch: the number of the epoch; each epoch has an order of its own.
    """
    count = len(lengths)
    order = permute(np.arange(count), count, seed, epoch)
    batches: list[NDArray[np.int64]] = []
    for begin in range(0, count, batch * BATCHES_SORTED):
        near = order[begin : begin + batch * BATCHES_SORTED]
        near = near[by_length(lengths[near])]
        batches += [near[start : start + batch] for start in range(0, len(near), batch)]
    return [batches[index] for index in permute(np.arange(len(batches)), len(batches), key_of(seed, epoch, "batch"), 0)]
