"""Orders: which examples the steps of a training read, and where the batch of each is cut into parts."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.formats.example import Format
from bakeoff.optimization.course import Course
from bakeoff.randomness.order import examples_of

EXAMPLES_AT_ONCE = 256
"""Batches are cut from chunks of this many examples, because numpy's calls cost more than their work on few."""

TOKENS_AT_ONCE = 4096
"""Tokens that go through the model at once where all of a text is measured."""

Cuts = Sequence[tuple[int, int]]
"""Where parts begin and end in some rows."""


class Selection(NamedTuple):
    """The rows of some steps, those of a step behind those of the one before; n rows."""

    indices: NDArray[np.int64]
    """(n,) their examples."""
    epochs: NDArray[np.int64]
    """(n,) how often each had been read before."""
    steps: NDArray[np.int64]
    """(n,) the step that each belongs to."""
    parts: list[list[tuple[int, int]]]
    """For each step where the parts of its batch begin and end in the rows."""


class FixedRows(NamedTuple):
    """Rows that are made together whatever the seed; n rows."""

    indices: NDArray[np.int64]
    """(n,) their examples."""
    epochs: NDArray[np.int64]
    """(n,) how often each had been read before."""
    parts: Cuts
    """Where the parts begin and end that they are handed out in."""


class Order(Protocol):
    """A function of the seed and the step."""

    steps_at_once: int
    """Steps whose rows are made together."""
    rows_a_step: float
    """Mean number of rows of a whole batch."""

    def steps(self, first: int) -> Selection:
        """The rows of `steps_at_once` steps from one on."""
        ...

    def spread(self, examples: int) -> Iterator[FixedRows]:
        """About so many examples, spread evenly over the text."""
        ...

    def whole(self) -> Iterator[FixedRows]:
        """All of the text once, in its own order as far as that can be."""
        ...

    def epoch(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The examples of the first epoch and the epoch of each, as many at once as in training."""
        ...


class ShuffledOrder:
    """Every epoch all examples in another order, cut into batches of a number of rows.

    Args:
        rows: the examples.
        course: rows of the batch of each step.
        micro_batch: rows of a part.
        seed: the run's seed.
    """

    def __init__(self, rows: Format, course: Course, micro_batch: int, seed: int) -> None:
        self.format, self.course, self.micro_batch, self.seed = rows, course, micro_batch, seed
        self.steps_at_once = max(1, EXAMPLES_AT_ONCE // course.batch)
        self.rows_a_step = float(course.batch)

    def steps(self, first: int) -> Selection:
        """The rows of `steps_at_once` steps from one on."""
        bounds = self.course.bounds(first, self.steps_at_once)
        indices, epochs = self.examples_between(first, bounds)
        steps = np.repeat(np.arange(first, first + self.steps_at_once), np.diff(bounds))
        return Selection(indices, epochs, steps, step_parts(bounds, self.micro_batch))

    def examples_between(self, first: int, bounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The examples of the steps from one on, whose batches lie between these places, and their epochs."""
        return examples_of(int(bounds[0]), int(bounds[-1] - bounds[0]), self.format.size, self.seed)

    def spread(self, examples: int) -> Iterator[FixedRows]:
        """So many examples, or all where there are fewer, in batches as large as the training's last."""
        indices = spread(examples, self.format.size)
        yield FixedRows(indices, np.zeros_like(indices), part_bounds(len(indices), self.course.batch, self.micro_batch))

    def whole(self) -> Iterator[FixedRows]:
        """All examples in their order; those that are read from both ends as `spread` has them."""
        if self.format.directions > 1:
            return self.spread(self.format.size)
        return in_order(self.format.size, max(1, int(TOKENS_AT_ONCE // self.format.tokens_per_example)))

    def epoch(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The examples of the first epoch and the epoch of each."""
        count = self.steps_at_once * self.course.batch
        for start in range(0, self.format.size, count):
            yield examples_of(start, min(count, self.format.size - start), self.format.size, self.seed)


def in_order(size: int, rows: int) -> Iterator[FixedRows]:
    """All of so many examples as they come, some at a time, in parts of so many rows."""
    for begin in range(0, size, EXAMPLES_AT_ONCE):
        indices = np.arange(begin, min(begin + EXAMPLES_AT_ONCE, size))
        bounds = [(low, min(low + rows, len(indices))) for low in range(0, len(indices), rows)]
        yield FixedRows(indices, np.zeros_like(indices), bounds)


def spread(examples: int, size: int) -> NDArray[np.int64]:
    """Indices of so many examples of `size`, or of all where there are fewer, spread evenly."""
    count = min(examples, size)
    return np.arange(count, dtype=np.int64) * size // count


def part_bounds(count: int, batch: int, micro_batch: int) -> list[tuple[int, int]]:
    """Where the parts begin and end; a part never reaches over the end of its batch."""
    bounds = np.array([*range(0, count, batch), count])
    return [cut for own in step_parts(bounds, micro_batch) for cut in own]


def step_parts(bounds: NDArray[np.int64], micro_batch: int) -> list[list[tuple[int, int]]]:
    """For each step where the parts of its batch begin and end, counted from the first step's first row.

    Args:
        bounds: (n + 1,) where the batches of n steps begin and end.
        micro_batch: rows of a part, but for the last of a batch.
    """
    ends = (bounds - bounds[0]).tolist()
    return [
        [(low, min(low + micro_batch, end)) for low in range(begin, end, micro_batch)] for begin, end in pairwise(ends)
    ]
