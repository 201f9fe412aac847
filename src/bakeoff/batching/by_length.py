"""Batches of rows of similar length, for rows in any order, so that few places are padding."""

import numpy as np
from numpy.typing import NDArray


def sorted_batches(lengths: NDArray[np.int64], tokens: int, most: int | None = None) -> list[NDArray[np.int64]]:
    """The places of the rows of each batch, the longest rows first.

    Args:
        lengths: (N,) number of tokens of each row.
        tokens: the largest number of tokens of a batch of two rows or more, padding included.
        most: the largest number of rows of a batch; None: any number.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, first = [], 0
    while first < len(order):
        count = max(1, tokens // max(1, int(lengths[order[first]])))
        count = count if most is None else min(most, count)
        batches.append(order[first : first + count])
        first += count
    return batches
