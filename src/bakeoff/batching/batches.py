"""Batches as a pure function of (corpus, objectives, seed, step), in four stages.

An order says which examples a step reads; the format makes rows of them; the objectives draw targets; and all becomes
tensors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.batch import Batch
from bakeoff.batching.lanes import LaneOrder
from bakeoff.batching.order import Cuts, FixedRows, Order, ShuffledOrder
from bakeoff.batching.target_drawing import TargetDrawing
from bakeoff.batching.tensors import batches_of
from bakeoff.batching.token_batches import TokenBatch, TokenOrder, trim
from bakeoff.corpus.store import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Format
from bakeoff.formats.pairs import SentencePairConfig
from bakeoff.formats.registry import InputConfig
from bakeoff.formats.uneven import Uneven
from bakeoff.objectives.objective import row_lengths
from bakeoff.optimization.course import Course
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class BatchSizes:
    """How large the batches of a training are, and the parts that each is handed out in."""

    batch: int | TokenBatch
    """Rows of a batch, or tokens."""
    micro_batch: int | TokenBatch
    """Rows, or tokens, of each part."""
    steps: int | None = None
    """Those of the training, where what is drawn depends on how far it is; None: as at its end."""
    first_batch: float = 1.0
    """The share of the rows that the first batch has, from which they grow evenly."""

    def order(self, rows: Format, course: Course, seed: int) -> Order:
        """The order in which examples are read; `course` is that of `course()`."""
        if isinstance(self.batch, TokenBatch):
            assert isinstance(self.micro_batch, TokenBatch)
            return TokenOrder(cast(Uneven, rows).lengths, self.batch.tokens, self.micro_batch.tokens, seed)
        assert isinstance(self.micro_batch, int)
        kind = ShuffledOrder if rows.advance is None else LaneOrder
        return kind(rows, course, self.micro_batch, seed)

    def course(self) -> Course:
        """What changes from step to step."""
        return Course(1 if isinstance(self.batch, TokenBatch) else self.batch, self.steps, self.first_batch)


class StepsAtOnce:
    """The steps of a training, which are made several at a time and kept as long as they are asked for in turn."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._kept: tuple[int, list[list[Batch]]] = (-1, [])

    def step(self, step: int) -> list[Batch]:
        """The batch of one step, in its parts."""
        chunk, place = divmod(step, self.at_once)
        if self._kept[0] != chunk:
            self._kept = (chunk, self.steps(chunk * self.at_once))
        return self._kept[1][place]

    def steps(self, first: int) -> list[list[Batch]]:
        """The batches of all steps that are made with that one, the first of them, each in its parts."""
        raise NotImplementedError


class Batches(StepsAtOnce):
    """All batches of a training.

    Args:
        split: the text.
        tokenizer: its tokenizer.
        rows: the rows' format.
        drawing: what the objectives do with them.
        sizes: of the batches.
        seed: the run's seed.

    Raises:
        UserError: the text has no row of that format.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        rows: InputConfig,
        drawing: TargetDrawing,
        sizes: BatchSizes,
        seed: int,
    ) -> None:
        self.split, self.tokenizer, self.drawing, self.sizes, self.seed = split, tokenizer, drawing, sizes, seed
        self.format = rows.build(split, tokenizer, drawing.marks, drawing.relation)
        self.parallel = rows.parallel
        if self.format.size == 0:
            raise UserError(_nothing(rows, drawing.relation is not None))
        self.course = sizes.course()
        self.order = sizes.order(self.format, self.course, seed)
        super().__init__(self.order.steps_at_once)

    @property
    def rows_an_epoch(self) -> int:
        """How many examples there are."""
        return self.format.size

    @property
    def tokens_per_example(self) -> float:
        """Mean number of tokens of an example, those of its source included, padding not counted."""
        text = self.format.tokens_per_example
        if self.parallel:
            return text
        source, target = row_lengths(self.drawing.objectives, round(text))
        return float(source + target) if source else text

    @property
    def tokens_per_step(self) -> float:
        """Mean number of tokens of a whole batch, padding not counted."""
        return self.tokens_per_example * self.order.rows_a_step

    def steps(self, first: int) -> list[list[Batch]]:
        """The batches of the steps that are made at once, from that one on, each in its parts."""
        chosen = self.order.steps(first)
        cuts = [cut for own in chosen.parts for cut in own]
        made = iter(self.make(chosen.indices, chosen.epochs, cuts, progress=self.course.progress(chosen.steps)))
        return [[next(made) for _ in own] for own in chosen.parts]

    def fixed(self, examples: int) -> list[Batch]:
        """Parts that never change: examples spread evenly over the split, their draws fixed whatever the run's seed."""
        return [part for rows in self.order.spread(examples) for part in self._fixed(rows)]

    def whole(self) -> Iterator[Batch]:
        """Parts with all of the split once and in its order, their draws fixed as those of `fixed`."""
        for rows in self.order.whole():
            yield from self._fixed(rows)

    def _fixed(self, rows: FixedRows) -> list[Batch]:
        return self.make(rows.indices, rows.epochs, rows.parts, seed=0)

    def make(
        self,
        indices: NDArray[np.int64],
        epochs: NDArray[np.int64],
        parts: Cuts,
        seed: int | None = None,
        progress: NDArray[np.float64] | None = None,
    ) -> list[Batch]:
        """Batches of these examples, cut at these places.

        `progress` is the share of the training that is done before each of them is read; None: all of it.
        """
        draws = self.drawing.draws(Draws(self.seed if seed is None else seed, epochs, indices))
        examples = self.format.examples(indices, draws)
        examples.progress = progress
        if isinstance(self.order, TokenOrder):
            trim(examples)
        targets = self.drawing.targets(examples, self.split, self.tokenizer, draws)
        return batches_of(examples, targets, parts, self.format.advance)


def _nothing(rows: InputConfig, related: bool) -> str:
    """Why a text has not one row."""
    if related or isinstance(rows, SentencePairConfig):
        return (
            f"the corpus has no two sentences of one document that fit into a row of {rows.length} tokens; raise "
            "input.length, or prepare documents of several sentences"
        )
    return "the corpus has no example of two tokens or more; prepare more text"
