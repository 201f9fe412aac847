"""The recurrent order: row b of a step continues row b of the previous step (Dai et al. 2019)."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bakeoff.batching.order import Selection, ShuffledOrder, in_order, spread
from bakeoff.errors import UserError
from bakeoff.formats.example import Format
from bakeoff.randomness.draws import key_of

FIXED_STREAMS = 16
"""Number of streams of held-out rows that continue each other, whatever the size of a training's batches."""

FEWEST_IN_TURN = 4
"""Smallest number of rows in a held-out stream; with fewer the memory of earlier rows would hardly count."""


class Streams:
    """The example that each stream reads in each step; B streams.

    The streams begin at equal distances over the text, the first at a place drawn from the seed. Each goes through the
    whole text, and continues at its beginning after its end. In n / B steps, where n is the number of examples of an
    epoch, every example is read once, but for a remainder where B does not divide n. If a text is read in both
    directions, every other stream reads forwards and the rest backwards.

    Args:
        format: the rows: the examples of one direction in the order of reading, then those of the other where there are
            two.
        streams: B, the number of rows of a batch.
        seed: decides where the streams begin.

    Raises:
        UserError: there are fewer examples than streams.
    """

    def __init__(self, format: Format, streams: int, seed: int) -> None:
        self.size = format.size // format.directions
        assert streams % format.directions == 0, "the recipe refuses them"
        self.each = streams // format.directions
        if self.size < self.each:
            raise UserError(
                f"training.batch: {streams} rows go through the text side by side, which makes {self.size} rows in "
                "each direction; give a smaller batch, shorter rows or more text"
            )
        number = np.arange(streams, dtype=np.int64)
        self.sequence = number % format.directions
        index = number // format.directions
        self.begin = (index * self.size // self.each + key_of(seed, 0, "lanes") % self.size) % self.size

    def examples_of(self, first: int, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The examples of some steps, and the number of times that the text has been read before.

        Args:
            first: the first step.
            steps: number of steps.

        Returns:
            (steps * B,) example indices, and the epoch of each.
        """
        step = np.arange(first, first + steps, dtype=np.int64)[:, None]
        indices = self.sequence * self.size + (self.begin + step) % self.size
        return indices.ravel(), np.broadcast_to(step * self.each // self.size, indices.shape).ravel()


class StreamOrder(ShuffledOrder):
    """The order of rows that continue each other, in as many streams as a batch has rows."""

    @cached_property
    def streams(self) -> Streams:
        """A stream for each row of a batch.

        Raises:
            UserError: the text is too short for this number of streams.
        """
        return Streams(self.format, self.course.batch, self.seed)

    @override
    def examples_between(self, first: int, bounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.streams.examples_of(first, len(bounds) - 1)

    def spread(self, examples: int) -> Iterator[Selection]:
        """About `examples` examples, in `FIXED_STREAMS` streams or fewer, with at least `FEWEST_IN_TURN` rows each."""
        count, directions = len(spread(examples, self.format.size)), self.format.directions
        streams = directions * max(1, min(FIXED_STREAMS, count // FEWEST_IN_TURN) // directions)
        steps = max(1, count // streams)
        order = Streams(self.format, streams, seed=0).examples_of(0, steps)
        yield Selection(*order, [(step * streams, (step + 1) * streams) for step in range(steps)])

    def whole(self) -> Iterator[Selection]:
        """All examples in one stream with a padded last row, or as `spread` where the text is read from both ends."""
        if self.format.directions > 1:
            return self.spread(self.format.size)
        return in_order(self.format.size + self.format.left_over, 1)
