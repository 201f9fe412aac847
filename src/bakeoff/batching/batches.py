"""Batches as a pure function of (corpus, objectives, seed, step), in four stages.

An order chooses the examples of a step; the format turns them into rows, in which the objectives draw targets; rows of
several texts are joined; and the result becomes tensors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from bakeoff.batching.batch import Batch
from bakeoff.batching.lanes import LaneOrder
from bakeoff.batching.mixture_order import MixtureOrder
from bakeoff.batching.order import Order, Selection, ShuffledOrder
from bakeoff.batching.rows import RowsWithTargets, TextRows, joined
from bakeoff.batching.tensors import batches_of
from bakeoff.batching.token_batches import TokenBatch, TokenOrder
from bakeoff.corpus.mixture import Mixture
from bakeoff.errors import UserError
from bakeoff.formats.example import Format
from bakeoff.formats.uneven import Uneven
from bakeoff.optimization.course import Course


@dataclass(frozen=True)
class BatchSizes:
    """The sizes of a training's batches, and of the micro-batches into which each is cut."""

    batch: int | TokenBatch
    """Number of rows of a batch, or its size in tokens."""
    micro_batch: int | TokenBatch
    """Number of rows of a micro-batch, or its size in tokens."""
    steps: int | None = None
    """Steps of the whole training, for draws that change with its progress; None: all draws are as at its end."""
    first_batch: float = 1.0
    """Number of rows of the first batch as a share of the last; the number grows evenly in between."""

    def order(self, rows: Format, course: Course, seed: int) -> Order:
        """The order in which the examples of one text are read; `course` is that of `course()`."""
        if isinstance(self.batch, TokenBatch):
            assert isinstance(self.micro_batch, TokenBatch)
            return TokenOrder(cast(Uneven, rows).lengths, self.batch.tokens, self.micro_batch.tokens, seed)
        assert isinstance(self.micro_batch, int)
        kind = ShuffledOrder if rows.advance is None else LaneOrder
        return kind(rows, course, self.micro_batch, seed)

    def mixture_order(self, mixture: Mixture, texts: Sequence[TextRows], course: Course, seed: int) -> Order:
        """The order in which the examples of a mixture's texts are read.

        Raises:
            UserError: rows continue each other, or batches have a number of tokens.
        """
        if texts[0].format.advance is not None:
            raise UserError(f"{mixture.path}: rows that continue each other go through one text; give a single corpus")
        if isinstance(self.micro_batch, TokenBatch):
            raise UserError(
                f"{mixture.path}: the shares of a mixture are of rows; give training.batch as a number of rows"
            )
        orders = [ShuffledOrder(text.format, course, self.micro_batch, text.seed) for text in texts]
        return MixtureOrder(mixture, orders, course, self.micro_batch, seed)

    def course(self) -> Course:
        """The quantities that change from step to step."""
        return Course(1 if isinstance(self.batch, TokenBatch) else self.batch, self.steps, self.first_batch)


class Batches:
    """All batches of a training.

    Args:
        texts: the rows of the text, or of each text of a mixture.
        sizes: the sizes of batches and micro-batches.
        seed: the run's seed.
        mixture: the shares of several texts; None: there is a single text.

    Raises:
        UserError: the rows of a mixture cannot be mixed.
    """

    def __init__(self, texts: Sequence[TextRows], sizes: BatchSizes, seed: int, mixture: Mixture | None = None) -> None:
        self.texts, self.course = texts, sizes.course()
        self.order = (
            sizes.order(texts[0].format, self.course, seed)
            if mixture is None
            else sizes.mixture_order(mixture, texts, self.course, seed)
        )
        self._kept: tuple[int, list[list[Batch]]] = (-1, [])

    @property
    def rows_an_epoch(self) -> int:
        """Number of examples of an epoch."""
        return sum(text.format.size for text in self.texts)

    @property
    def tokens_per_step(self) -> float:
        """Mean number of tokens of a whole batch, padding not counted."""
        rows = zip(self.order.rows_a_step, self.texts, strict=True)
        return sum(count * text.tokens_per_example for count, text in rows)

    def step(self, step: int) -> list[Batch]:
        """The micro-batches of one step. Several steps are made at a time, and the later ones are kept."""
        chunk, place = divmod(step, self.order.steps_at_once)
        if self._kept[0] != chunk:
            self._kept = (chunk, self._steps(chunk * self.order.steps_at_once))
        return self._kept[1][place]

    def _steps(self, first: int) -> list[list[Batch]]:
        """The micro-batches of each of the steps that are made together, from step `first` on."""
        chosen = self.order.steps(first)
        assert chosen.steps is not None
        steps: list[list[Batch]] = [[] for _ in range(self.order.steps_at_once)]
        for (begin, _), batch in zip(chosen.micro_batches, self.make(chosen), strict=True):
            steps[int(chosen.steps[begin]) - first].append(batch)
        return steps

    def fixed(self, examples: int) -> list[Batch]:
        """Batches of examples spread evenly over the split, with the same draws for every seed."""
        return [batch for chosen in self.order.spread(examples) for batch in self.make(chosen)]

    def whole(self) -> Iterator[Batch]:
        """Batches of all examples of the split, each once and in order, with the same draws as in `fixed`."""
        for chosen in self.order.whole():
            yield from self.make(chosen)

    def make(self, chosen: Selection) -> list[Batch]:
        """Batches of the chosen rows, cut into their micro-batches."""
        progress = None if chosen.steps is None else self.course.progress(chosen.steps)
        measured = chosen.steps is None
        numbers = np.zeros_like(chosen.indices) if chosen.texts is None else chosen.texts
        made: list[RowsWithTargets] = []
        places = []
        for number in np.unique(numbers):
            text, own = self.texts[number], np.flatnonzero(numbers == number)
            done = None if progress is None else progress[own]
            seed = 0 if measured else text.seed
            made.append(text.make(chosen.indices[own], chosen.epochs[own], seed, done, self.order.even, measured))
            places.append(own)
        first = self.texts[0]
        rows = made[0] if len(made) == 1 else joined(made, places, first.tokenizer.pad)
        return batches_of(rows, chosen.micro_batches, first.format.advance)
