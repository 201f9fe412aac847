"""Formats whose rows have different lengths, and the lengths to which they are padded."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.formats.example import Format

LENGTH_STEP = 4
"""Rows whose lengths have the same multiple of this above them are alike, and padded to it: the larger, the more there
are to draw from, and the more is padding."""


class Uneven(Format, Protocol):
    """An input format whose rows have different lengths, known beforehand."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(S, K) tokens of each example's row, and of its source where it has one, special tokens included."""
        ...


def padded_length(lengths: NDArray[np.int64]) -> int:
    """The smallest multiple of `LENGTH_STEP` that is no smaller than any length."""
    return -(-int(lengths.max(initial=1)) // LENGTH_STEP) * LENGTH_STEP
