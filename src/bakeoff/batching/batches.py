"""Batches as a pure function of (corpus, objectives, seed, step), in four stages.

An order chooses the examples of a step; the format turns them into rows, in which the objectives draw targets; rows of
several texts are joined; and the result becomes tensors.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.batching.batch import Batch
from bakeoff.batching.mixture_order import MixtureOrder
from bakeoff.batching.order import Cuts, Order, Selection, ShuffledOrder, own_share
from bakeoff.batching.rows import RowsWithTargets, TextRows, joined
from bakeoff.batching.streams import StreamOrder
from bakeoff.batching.token_batches import TokenBatch, TokenOrder
from bakeoff.corpus.mixture import Mixture, mixed_tokens_per_byte
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.formats.example import Format, Uneven
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.optimization.course import Course
from bakeoff.row import Row, mapped
from bakeoff.spans import spans_of


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
        kind = ShuffledOrder if rows.advance is None else StreamOrder
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
        processes: the processes that train together, each of which makes the rows of its own micro-batches alone.

    Raises:
        UserError: the rows of a mixture cannot be mixed.
    """

    def __init__(
        self,
        texts: Sequence[TextRows],
        sizes: BatchSizes,
        seed: int,
        mixture: Mixture | None = None,
        processes: Processes = ALONE,
    ) -> None:
        self.texts, self.course, self.processes, self._mixture = texts, sizes.course(), processes, mixture
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
    def separators(self) -> list[int]:
        """Number of separators in an epoch of each text that a model which reads forwards predicts."""
        counts = [(text.format.separators, len(text.split.documents) - 1) for text in self.texts]
        return [documents if count is None else count for count, documents in counts]

    def targets_per_byte(self, objective: str) -> float:
        """Tokens that an objective counts for each byte of text, separators included; those of a mixture in its shares.

        The loss of one that bounds a likelihood is divided by the tokens of the text alone.
        """
        separators = [0 for _ in self.texts] if OBJECTIVES[objective].bounds else self.separators
        texts = [text.split.targets_per_byte(count) for text, count in zip(self.texts, separators, strict=True)]
        return texts[0] if self._mixture is None else mixed_tokens_per_byte(texts, self._mixture.shares)

    @property
    def tokens_per_step(self) -> float:
        """Mean number of tokens of a whole batch, padding not counted."""
        rows = zip(self.order.rows_a_step, self.texts, strict=True)
        return sum(count * text.tokens_per_example for count, text in rows)

    @property
    def kept_share(self) -> float:
        """The share of a row's tokens that objectives leave in it."""
        return self.texts[0].kept_share

    def step(self, step: int) -> list[Batch]:
        """This process's micro-batches of one step. Several steps are made at a time, and the later ones are kept."""
        chunk, index = divmod(step, self.order.steps_at_once)
        if self._kept[0] != chunk:
            self._kept = (chunk, self._steps(chunk * self.order.steps_at_once))
        return self._kept[1][index]

    def _steps(self, first: int) -> list[list[Batch]]:
        """The micro-batches of each of the steps that are made together, from step `first` on."""
        chosen, places = own_share(self.order.steps(first), self.processes)
        steps: list[list[Batch]] = [[] for _ in range(self.order.steps_at_once)]
        if not places:
            return steps
        assert chosen.steps is not None
        for (begin, _), place, batch in zip(chosen.micro_batches, places, self.make(chosen), strict=True):
            steps[int(chosen.steps[begin]) - first].append(replace(batch, **place._asdict()))
        return steps

    def spare(self) -> Batch:
        """The first micro-batch of the first step, whichever process would have it."""
        chosen = self.order.steps(0)
        begin, end = chosen.micro_batches[0]
        steps, texts = (None if each is None else each[begin:end] for each in (chosen.steps, chosen.texts))
        indices, epochs = chosen.indices[begin:end], chosen.epochs[begin:end]
        return self.make(Selection(indices, epochs, [(0, end - begin)], steps, texts))[0]

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
        positions = []
        for number in np.unique(numbers):
            text, members = self.texts[number], np.flatnonzero(numbers == number)
            done = None if progress is None else progress[members]
            seed = 0 if measured else text.seed
            made.append(
                text.make(chosen.indices[members], chosen.epochs[members], seed, done, self.order.even, measured)
            )
            positions.append(members)
        first = self.texts[0]
        rows = made[0] if len(made) == 1 else joined(made, positions, first.tokenizer.pad)
        return batches_of(rows, chosen.micro_batches, first.format.advance, chosen.counted)


def batches_of(rows: RowsWithTargets, micro_batches: Cuts, advance: int | None, row_count: float = 1) -> list[Batch]:
    """Batches of tensors, cut from rows.

    Args:
        rows: N rows.
        micro_batches: for each batch, its first row and the row after its last.
        advance: see `Batch`.
        row_count: how many rows each of them counts for; see `Selection`.
    """
    width, length = rows.examples.row.ids.shape[1], rows.length
    counted = {name: target.in_rows_of(width, length) for name, target in rows.targets.items()}
    made = []
    for begin, end in micro_batches:
        row = mapped(rows.examples.row, itemgetter(slice(begin, end)))
        within, weights, counted_rows = {}, {}, {}
        for name, target in counted.items():
            states = length * target.directions  # of one example
            low, high = np.searchsorted(target.rows, [begin * states, end * states])
            within[name] = (
                torch.from_numpy(target.rows[low:high] - begin * states),
                torch.from_numpy(target.labels[low:high]),
            )
            if target.weights is not None:
                weights[name] = torch.from_numpy(target.weights[low:high])
            if target.counted is not None:
                counted_rows[name] = target.counted[begin:end]
        tokens = int((row.documents > 0).sum()) + (0 if row.source is None else int(row.source.padding_mask.sum()))
        tensors = mapped(_without_needless(row), torch.from_numpy)
        spans = None if tensors.owners is None else spans_of(tensors.owners)
        row_tensors = tensors._replace(spans=spans)
        batch = Batch(
            row_tensors, within, tokens, advance, weights=weights, counted_rows=counted_rows, counted=row_count
        )
        made.append(_apart(batch))
    return made


def _apart(batch: Batch) -> Batch:
    """The batch with what it says of rows that are read causally by an encoder, or of all its rows at once."""
    if batch.row.causal is None:
        return batch
    causal = batch.row.causal.bool()
    if causal.all() or not causal.any():
        return replace(batch, row=batch.row._replace(causal=None, behind=bool(causal.all())))
    return replace(batch, apart=((~causal).nonzero()[:, 0], causal.nonzero()[:, 0]))


def _without_needless(row: Row[NDArray[Any]]) -> Row[NDArray[Any]]:
    """The row without masks that hide nothing, and without ids of documents where each row is one."""
    documents, source = row.documents, row.source
    assert documents is not None
    packed, padded = bool((documents > 1).any()), bool((documents == 0).any())
    if source is not None and source.padding_mask is not None and source.padding_mask.all():
        source = source._replace(padding_mask=None)
    return row._replace(
        padding_mask=documents > 0 if padded and not packed else None,
        documents=documents if packed else None,
        source=source,
    )


Made = TypeVar("Made")


def prefetch(make: Callable[[int], Made], start: int, stop: int, depth: int = 4) -> Generator[Made, None, None]:
    """Results of `make(start)`, ..., `make(stop - 1)`, made in a thread that stays up to `depth` results ahead.

    An exception in the thread is raised here; leaving the loop early stops the thread after the result in progress.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        coming: deque[Future[Made]] = deque()
        try:
            for step in range(start, stop):
                while len(coming) <= depth and step + len(coming) < stop:
                    coming.append(thread.submit(make, step + len(coming)))
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()
