"""Formats whose rows have different lengths, and the lengths to which they are padded."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.formats.example import Format

LENGTH_STEP = 4
"""Row lengths are padded to multiples of this, and rows padded to one length count as alike. A larger step leaves more
rows of a length to draw from, and more padding.
"""


class Uneven(Format, Protocol):
    """An input format whose rows have different lengths, known beforehand."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(S, K) numbers of tokens of each example's row, and of its source if it has one, special tokens included."""
        ...


def padded_length(lengths: NDArray[np.int64]) -> int:
    """The smallest multiple of `LENGTH_STEP` that is at least as large as every length."""
    return -(-int(lengths.max(initial=1)) // LENGTH_STEP) * LENGTH_STEP
