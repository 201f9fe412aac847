"""Orders: the examples that the steps of a training read, and the cuts of each batch into micro-batches."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.distributed.processes import Processes
from bakeoff.formats.example import Format
from bakeoff.optimization.course import Course
from bakeoff.randomness.order import examples_of

EXAMPLES_AT_ONCE = 256
"""Number of examples that are prepared together before being cut into batches, because a numpy call on few examples
costs more than its work.
"""

TOKENS_AT_ONCE = 4096
"""Number of tokens that go through the model at once in measurements over a whole text."""

Cuts = Sequence[tuple[int, int]]
"""For each micro-batch, its first row and the row after its last."""


class Selection(NamedTuple):
    """Rows that are made together; n rows."""

    indices: NDArray[np.int64]
    """(n,) the example of each row, as its index in its text."""
    epochs: NDArray[np.int64]
    """(n,) number of times that each example had been read before."""
    micro_batches: Cuts
    """The bounds of the micro-batches of these rows."""
    steps: NDArray[np.int64] | None = None
    """(n,) the step of each row, in rising order; None: the rows belong to no training."""
    texts: NDArray[np.int64] | None = None
    """(n,) the number of each row's text; None: there is a single text."""
    counted: float = 1
    """How many rows each of these counts for in a measurement: of a mixture, as many as its text's share asks for."""


class Order(Protocol):
    """The order in which rows are read; in training it is a function of the seed and the step."""

    steps_at_once: int
    """Number of steps whose rows are made together."""
    rows_a_step: tuple[float, ...]
    """Mean number of rows of a whole batch from each text."""
    even: bool
    """Whether a batch holds rows of about the same length, so that rows can be cut to its longest."""

    def steps(self, first: int) -> Selection:
        """The rows of `steps_at_once` steps, from step `first` on; no micro-batch reaches over the end of a step."""
        ...

    def spread(self, examples: int) -> Iterator[Selection]:
        """About `examples` examples, spread evenly over the text."""
        ...

    def whole(self) -> Iterator[Selection]:
        """All examples of the text once, in the order of the text as far as possible."""
        ...

    def epoch(self) -> Iterator[Selection]:
        """The examples of the first epoch, as many at once as in training, without micro-batches."""
        ...


class ShuffledOrder:
    """All examples in another order in every epoch, cut into batches of a number of rows.

    Args:
        rows: the rows of the text.
        course: the number of rows in the batch of each step.
        micro_batch: the number of rows of a micro-batch.
        seed: the run's seed.
    """

    even = False

    def __init__(self, rows: Format, course: Course, micro_batch: int, seed: int) -> None:
        self.format, self.course, self.micro_batch, self.seed = rows, course, micro_batch, seed
        self.steps_at_once = steps_at_once(course)
        self.rows_a_step: tuple[float, ...] = (float(course.batch),)

    def steps(self, first: int) -> Selection:
        """The rows of `steps_at_once` steps, from step `first` on."""
        bounds = self.course.bounds(first, self.steps_at_once)
        indices, epochs = self.examples_between(first, bounds)
        return Selection(indices, epochs, micro_batch_bounds(bounds, self.micro_batch), steps_between(first, bounds))

    def examples_between(self, first: int, bounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The examples of the steps from `first` on, and their epochs; `bounds` are the ends of the batches."""
        return examples_of(int(bounds[0]), int(bounds[-1] - bounds[0]), self.format.size, self.seed)

    def spread(self, examples: int) -> Iterator[Selection]:
        """Up to `examples` examples spread evenly over the text, in batches as large as the training's last."""
        indices = spread(examples, self.format.size)
        bounds = np.array([*range(0, len(indices), self.course.batch), len(indices)])
        yield Selection(indices, np.zeros_like(indices), micro_batch_bounds(bounds, self.micro_batch))

    def whole(self) -> Iterator[Selection]:
        """All examples in their order; rows that are read from both ends are chosen as in `spread`."""
        if self.format.directions > 1:
            return self.spread(self.format.size)
        return in_order(self.format.size, max(1, int(TOKENS_AT_ONCE // self.format.tokens_per_example)))

    def epoch(self) -> Iterator[Selection]:
        """The examples of the first epoch."""
        count = self.steps_at_once * self.course.batch
        for start in range(0, self.format.size, count):
            examples = examples_of(start, min(count, self.format.size - start), self.format.size, self.seed)
            yield Selection(*examples, micro_batches=())


def in_order(size: int, rows: int) -> Iterator[Selection]:
    """All of `size` examples in their order, a number at a time, in micro-batches of `rows` rows."""
    for begin in range(0, size, EXAMPLES_AT_ONCE):
        indices = np.arange(begin, min(begin + EXAMPLES_AT_ONCE, size))
        bounds = [(low, min(low + rows, len(indices))) for low in range(0, len(indices), rows)]
        yield Selection(indices, np.zeros_like(indices), bounds)


def spread(examples: int, size: int) -> NDArray[np.int64]:
    """Indices of `examples` of `size` examples, spread evenly, or of all where there are fewer."""
    count = min(examples, size)
    return np.arange(count, dtype=np.int64) * size // count


def steps_at_once(course: Course) -> int:
    """Number of steps whose rows are made together, for batches of a number of rows."""
    return max(1, EXAMPLES_AT_ONCE // course.batch)


def steps_between(first: int, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the step of each row, for the steps from `first` on, whose batches end at (steps + 1,) bounds."""
    return np.repeat(np.arange(first, first + len(bounds) - 1), np.diff(bounds))


def micro_batch_bounds(bounds: NDArray[np.int64], micro_batch: int) -> list[tuple[int, int]]:
    """The bounds of micro-batches, counted from the first row; no micro-batch crosses the end of its batch.

    Args:
        bounds: (n + 1,) the positions at which n batches begin and end.
        micro_batch: number of rows of a micro-batch; the last one of a batch may have fewer.
    """
    ends = (bounds - bounds[0]).tolist()
    return [
        (low, min(low + micro_batch, end)) for begin, end in pairwise(ends) for low in range(begin, end, micro_batch)
    ]


class Place(NamedTuple):
    """The place of a micro-batch in the whole batch of its step."""

    number: int
    """Its number."""
    first_row: int
    """Number of rows before its own."""


def own_share(chosen: Selection, processes: Processes) -> tuple[Selection, list[Place]]:
    """The rows of a process's share of the micro-batches of each step, and the place of each micro-batch in its step.

    Args:
        chosen: the rows of some steps, cut into their micro-batches.
        processes: the processes that share them.
    """
    assert chosen.steps is not None
    cuts = chosen.micro_batches
    step_of = [int(chosen.steps[begin]) for begin, _ in cuts]
    first = [step_of.index(step) for step in step_of]
    places = [Place(index - first[index], cuts[index][0] - cuts[first[index]][0]) for index in range(len(cuts))]
    if processes.alone:
        return chosen, places
    shares = {step: processes.share(count) for step, count in Counter(step_of).items()}
    mine = [index for index, step in enumerate(step_of) if places[index].number in shares[step]]
    rows = np.concatenate([np.arange(*cuts[index]) for index in mine] or [np.zeros(0, np.int64)])
    ends = np.cumsum([0, *(cuts[index][1] - cuts[index][0] for index in mine)]).tolist()
    narrowed = Selection(
        chosen.indices[rows],
        chosen.epochs[rows],
        list(pairwise(ends)),
        chosen.steps[rows],
        None if chosen.texts is None else chosen.texts[rows],
    )
    return narrowed, [places[index] for index in mine]
