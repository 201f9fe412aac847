"""The course of a training: the share that is done before each step, and the rows of each batch."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

STEPS_AT_ONCE = 4096
"""Number of steps whose batch sizes are added up at once."""


Share = TypeVar("Share", float, NDArray[np.float64])


def evenly(first: float, last: float, progress: Share) -> Share:
    """First + (last - first) p: a value that changes evenly over a training, at the share p = `progress` of it."""
    return first + (last - first) * progress


def batch_rows(batch: int, first_batch: float, progress: float | NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of the batches at the shares p of a training: (f + (1 - f) p) B, rounded, at least one."""
    share = evenly(first_batch, 1.0, np.asarray(progress, np.float64))
    return np.maximum(np.floor(batch * share + 0.5), 1).astype(np.int64)


class Course:
    """The steps of a training; its batches all have the same number of rows, or grow evenly to it.

    Args:
        batch: rows of a batch, at the end of the training at least.
        steps: steps of the training; None: unknown, and the batches keep one size.
        first_batch: the share of the rows that the first batch has.
    """

    def __init__(self, batch: int, steps: int | None = None, first_batch: float = 1.0) -> None:
        self.batch, self.steps = batch, steps
        self.first_batch = 1.0 if steps is None else first_batch
        self._ends = np.zeros(1, np.int64)  # the rows of so many steps from the first on, as far as they were asked for

    def progress(self, steps: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """(n,) the share of the training that is done before each of these steps; None where steps are unknown."""
        return None if self.steps is None else np.minimum(steps / self.steps, 1.0)

    def rows(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) rows of the batches of these steps, see `batch_rows`."""
        if self.first_batch == 1.0:
            return np.full(len(steps), self.batch, np.int64)
        assert self.steps is not None
        return batch_rows(self.batch, self.first_batch, np.minimum(steps / self.steps, 1.0))

    def bounds(self, step: int, count: int) -> NDArray[np.int64]:
        """(count + 1,) bounds of the batches of `count` steps, as positions in the sequence of all rows."""
        if self.first_batch == 1.0:
            return self.batch * np.arange(step, step + count + 1, dtype=np.int64)
        while len(self._ends) <= step + count:
            following = np.arange(len(self._ends) - 1, len(self._ends) - 1 + STEPS_AT_ONCE, dtype=np.int64)
            self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(self.rows(following))])
        return self._ends[step : step + count + 1]
