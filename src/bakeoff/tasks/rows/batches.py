"""Batches of encoded rows, as tensors."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.lengths import padded
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat

MULTIPLE = 8
"""The length of a batch is rounded up to a multiple of this, so that there are few different shapes."""


class InputBatch(NamedTuple):
    """A batch of B rows of length T."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None
    """(B, T) segment ids, or None for segment 0 everywhere."""
    padding_mask: Tensor | None
    """(B, T) the padding mask: True for tokens, False for padding; None where there is no padding."""

    def to(self, device: torch.device) -> "InputBatch":
        """The batch on a device."""
        return InputBatch(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]


def collate(encoded: EncodedRows, rows: NDArray[np.int64], format: InputFormat) -> InputBatch:
    """The batch of some rows, padded to the longest, rounded up to MULTIPLE but not beyond the format's length."""
    sequences = [encoded.ids[row] for row in rows]
    ids, padding_mask = padded(sequences, format.pad, step=MULTIPLE, most=format.length)
    second, lengths = encoded.second[rows], np.array([len(row) for row in sequences])
    segments = None
    if format.segments and (format.start_last or (second < lengths).any()):
        column = np.arange(ids.shape[1])
        numbers = ((column < lengths[:, None]) & (column >= second[:, None])).astype(np.int64)
        if format.start_last:
            numbers[np.arange(len(rows)), lengths - 1] = 2
        segments = torch.from_numpy(numbers)
    return InputBatch(ids, segments, padding_mask)
