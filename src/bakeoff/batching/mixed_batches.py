"""Batches of several corpora, of each as many rows as its share."""

from collections.abc import Sequence

import numpy as np

from bakeoff.batching.batch import Batch, join
from bakeoff.batching.batches import Batches, StepsAtOnce
from bakeoff.batching.order import step_parts
from bakeoff.batching.token_batches import TokenOrder
from bakeoff.corpus.mixture import Mixture, apportioned
from bakeoff.errors import UserError
from bakeoff.randomness.order import examples_of


class MixedBatches(StepsAtOnce):
    """All batches of a training on a mixture, each a function of the seed and its step.

    Args:
        mixture: the corpora.
        batches: the batches of each of them alone, each with a seed of its own.
        directions: hidden states of each position of the model.
        seed: the run's seed.

    Raises:
        UserError: rows continue each other, or batches have a number of tokens.
    """

    def __init__(self, mixture: Mixture, batches: Sequence[Batches], directions: int, seed: int) -> None:
        self.mixture, self.parts, self.directions, self.seed = mixture, batches, directions, seed
        first = batches[0]
        if first.format.advance is not None:
            raise UserError(f"{mixture.path}: rows that continue each other go through one text; give a single corpus")
        if isinstance(first.order, TokenOrder):
            raise UserError(
                f"{mixture.path}: the shares of a mixture are of rows; give training.batch as a number of rows"
            )
        assert isinstance(first.sizes.micro_batch, int)
        self.micro_batch, self.course = first.sizes.micro_batch, first.course
        self.rows_an_epoch = sum(part.format.size for part in batches)
        super().__init__(first.order.steps_at_once)

    @property
    def tokens_per_step(self) -> float:
        """Mean number of tokens of a whole batch, padding not counted."""
        shares = zip(self.mixture.shares, self.parts, strict=True)
        return self.course.batch * sum(share * part.tokens_per_example for share, part in shares)

    def fixed(self, examples: int) -> list[Batch]:
        """Parts that never change: of each corpus's rows its share, spread evenly."""
        counts = apportioned(self.mixture.shares, examples)
        return [batch for part, own in zip(self.parts, counts, strict=True) if own for batch in part.fixed(own)]

    def steps(self, first: int) -> list[list[Batch]]:
        """The batches of the steps that are made at once, from that one on, each in its parts."""
        steps = self.at_once
        ends = self.course.bounds(first, steps)
        order = self.mixture.order(self.seed, int(ends[0]), int(ends[-1] - ends[0]))
        progress = self.course.progress(np.repeat(np.arange(first, first + steps), np.diff(ends)))
        parts = step_parts(ends, self.micro_batch)
        bounds = [cut for own in parts for cut in own]
        pieces: list[list[Batch]] = [[] for _ in bounds]
        for number, part in enumerate(self.parts):
            before = np.concatenate([[0], np.cumsum(order.corpora == number)])  # rows of this corpus before each row
            own = [(int(before[low]), int(before[high])) for low, high in bounds]
            if before[-1] == 0:
                continue
            indices = examples_of(order.first[number], int(before[-1]), part.format.size, part.seed)
            done = None if progress is None else progress[order.corpora == number]
            made = iter(part.make(*indices, [cut for cut in own if cut[0] < cut[1]], progress=done))
            for place, (low, high) in enumerate(own):
                if low < high:
                    pieces[place].append(next(made))
        joined = iter([join(own, self.directions, self.mixture.tokenizer.pad) for own in pieces])
        return [[next(joined) for _ in own] for own in parts]
