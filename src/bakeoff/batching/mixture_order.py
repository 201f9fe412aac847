"""The order of a mixture: every batch holds each corpus in its share of the rows."""

from collections.abc import Iterator, Sequence

import numpy as np

from bakeoff.batching.order import Selection, ShuffledOrder, micro_batch_bounds, steps_at_once, steps_between
from bakeoff.corpus.mixture import Mixture, apportioned
from bakeoff.optimization.course import Course
from bakeoff.randomness.order import examples_of


class MixtureOrder:
    """The rows of each step, corpus by corpus within each micro-batch.

    Args:
        mixture: the corpora.
        orders: the order of each corpus by itself, with a seed of its own.
        course: the number of rows in the batch of each step.
        micro_batch: the number of rows of a micro-batch.
        seed: the run's seed, which decides the corpus of each row.
    """

    even = False

    def __init__(
        self, mixture: Mixture, orders: Sequence[ShuffledOrder], course: Course, micro_batch: int, seed: int
    ) -> None:
        self.mixture, self.orders, self.course = mixture, orders, course
        self.micro_batch, self.seed = micro_batch, seed
        self.steps_at_once = steps_at_once(course)
        self.rows_a_step = tuple(share * course.batch for share in mixture.shares)

    def steps(self, first: int) -> Selection:
        """The rows of `steps_at_once` steps, from step `first` on."""
        bounds = self.course.bounds(first, self.steps_at_once)
        rows = int(bounds[-1] - bounds[0])
        drawn = self.mixture.interleaving(self.seed, int(bounds[0]), rows)
        indices, epochs = np.empty(rows, np.int64), np.empty(rows, np.int64)
        for number, (order, begin) in enumerate(zip(self.orders, drawn.first, strict=True)):
            members = drawn.corpora == number
            indices[members], epochs[members] = examples_of(begin, int(members.sum()), order.format.size, order.seed)
        cuts = micro_batch_bounds(bounds, self.micro_batch)
        micro_batches = np.repeat(np.arange(len(cuts)), [high - low for low, high in cuts])
        turn = np.lexsort((drawn.corpora, micro_batches))  # which keeps the turn of the rows of one corpus
        return Selection(indices[turn], epochs[turn], cuts, steps_between(first, bounds), drawn.corpora[turn])

    def spread(self, examples: int) -> Iterator[Selection]:
        """About `examples` examples: each corpus gives its share, spread evenly over the corpus, and at least one.

        Its rows count for as many as its share is of.
        """
        counts = apportioned(self.mixture.shares, examples)
        for number, (share, order, count) in enumerate(zip(self.mixture.shares, self.orders, counts, strict=True)):
            rows = min(max(count, 1), order.format.size)
            counted = share * examples / rows
            yield from (each._replace(counted=counted) for each in _of(number, order.spread(rows)))

    def whole(self) -> Iterator[Selection]:
        """All examples of each corpus once, whatever the shares."""
        for number, order in enumerate(self.orders):
            yield from _of(number, order.whole())

    def epoch(self) -> Iterator[Selection]:
        """The examples of the first epoch of each corpus."""
        for number, order in enumerate(self.orders):
            yield from _of(number, order.epoch())


def _of(number: int, selections: Iterator[Selection]) -> Iterator[Selection]:
    """The selections, with all rows marked as rows of the corpus with this number."""
    for each in selections:
        yield each._replace(texts=np.full_like(each.indices, number))
