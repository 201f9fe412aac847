"""Batches of encoded rows, as tensors."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.lengths import padded
from bakeoff.row import Row
from bakeoff.spans import spans_of
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat

MULTIPLE = 8
"""The length of a batch is rounded up to a multiple of this, so that there are few different shapes."""


def collate(encoded: EncodedRows, rows: NDArray[np.int64], format: InputFormat) -> Row[Tensor]:
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
    spans = None if padding_mask is None else spans_of(padding_mask)
    return Row(ids, segments, padding_mask, spans=spans)
