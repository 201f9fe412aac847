"""Batches of rows of similar length, in an order that is a pure function of (seed, epoch)."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat

BATCHES_SORTED = 16
"""The number of shuffled batches within which rows are sorted by length: batches with little padding that still differ
from epoch to epoch."""

MULTIPLE = 8
"""The length of a batch is rounded up to a multiple of this, so that there are few different shapes."""


class InputBatch(NamedTuple):
    """A batch of B rows of length T."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None
    """(B, T) segment ids, or None for segment 0 everywhere."""
    real: Tensor | None
    """(B, T) the padding mask: True for tokens, False for padding; None where there is no padding."""

    def to(self, device: torch.device) -> "InputBatch":
        """The batch on a device."""
        return InputBatch(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]


def collate(encoded: EncodedRows, rows: NDArray[np.int64], format: InputFormat) -> InputBatch:
    """The batch of some rows, padded to the longest, rounded up to MULTIPLE but not beyond the format's length."""
    lengths = np.array([len(encoded.ids[row]) for row in rows])
    width = min(-(-int(lengths.max()) // MULTIPLE) * MULTIPLE, format.length)
    ids = np.full((len(rows), width), format.pad, np.int64)
    for place, row in enumerate(rows):
        ids[place, : lengths[place]] = encoded.ids[row]
    column = np.arange(width)
    real = column < lengths[:, None]  # (B, T)
    segments = None
    if format.segments and (format.start_last or (encoded.second[rows] < lengths).any()):
        numbers = (real & (column >= encoded.second[rows][:, None])).astype(np.int64)
        if format.start_last:
            numbers[np.arange(len(rows)), lengths - 1] = 2
        segments = torch.from_numpy(numbers)
    return InputBatch(torch.from_numpy(ids), segments, None if real.all() else torch.from_numpy(real))


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
        near = near[np.argsort(lengths[near], kind="stable")]
        batches += [near[start : start + batch] for start in range(0, len(near), batch)]
    return [batches[place] for place in permute(np.arange(len(batches)), len(batches), key_of(seed, epoch, "batch"), 0)]
