"""Rows of unlike lengths: their order by length, and their padding. Shapes: N or B rows, T length."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LENGTH_STEP = 4
"""Lengths of rows in pre-training are padded to multiples of this, and rows padded to one length count as alike. A
larger step leaves more rows of a length to draw from, and more padding.
"""


def by_length(*lengths: NDArray[np.int64], longest_first: bool = False) -> NDArray[np.int64]:
    """(N,) the indices of rows in the order of their lengths; rows of equal length stay in their order.

    Args:
        lengths: (N,) lengths; those that follow decide between rows that are equal in the ones before.
        longest_first: the longest row comes first, else the shortest.
    """
    keys = [-each if longest_first else each for each in reversed(lengths)]
    order: NDArray[np.int64] = np.lexsort(keys)
    return order


def padded_length(lengths: NDArray[np.int64], step: int = LENGTH_STEP) -> int:
    """The smallest multiple of `step` that is at least as large as every length, and 1."""
    return -(-int(lengths.max(initial=1)) // step) * step


def padded(
    rows: Sequence[NDArray[np.int64] | Sequence[int]],
    fill: int,
    device: torch.device | None = None,
    *,
    step: int = 1,
    most: int | None = None,
    before: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Rows as one tensor, padded to the longest.

    Args:
        rows: B rows of ids.
        fill: the id at padding.
        device: the device of the tensors; None: the CPU.
        step: T is rounded up to a multiple of this, so that there are few shapes.
        most: the largest T.
        before: padding stands before the tokens, else after them.

    Returns:
        (B, T) ids, and the (B, T) padding mask, True for tokens; None: there is no padding.
    """
    lengths = np.array([len(row) for row in rows], np.int64)
    longest = -(-int(lengths.max(initial=0)) // step) * step
    length = longest if most is None else min(longest, most)
    ids = np.full((len(rows), length), fill, np.int64)
    for index, row in enumerate(rows):
        begin = length - len(row) if before else 0
        ids[index, begin : begin + len(row)] = row
    column = np.arange(length)
    padding_mask = column >= length - lengths[:, None] if before else column < lengths[:, None]
    mask = None if padding_mask.all() else torch.from_numpy(padding_mask).to(device)
    return torch.from_numpy(ids).to(device), mask
