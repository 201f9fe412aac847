"""Batches as a pure function of (corpus, objectives, seed, step), made ahead in a background thread."""

import queue
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.batching.batch import Batch
from bakeoff.batching.lanes import Lanes
from bakeoff.batching.token_batches import TokenBatch, TokenOrder, trim
from bakeoff.corpus.store import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Format
from bakeoff.formats.input_config import RowMarks
from bakeoff.formats.pairs import SentencePairConfig
from bakeoff.formats.registry import InputConfig
from bakeoff.formats.relation import AsTheyAre, Relation
from bakeoff.formats.uneven import Uneven
from bakeoff.models.inputs import Queries, Source
from bakeoff.objectives.objective import Objective, ObjectiveConfig, no_targets, row_lengths
from bakeoff.optimization.course import Course
from bakeoff.randomness.draws import Draws
from bakeoff.randomness.order import examples_of
from bakeoff.tokenizer.tokenizer import Tokenizer

Made = TypeVar("Made")

FixedRows = tuple[NDArray[np.int64], NDArray[np.int64], Sequence[tuple[int, int]] | None]

FIXED_LANES = 16
"""Lanes of held-out rows that continue each other, whatever the size of a training's batches."""

FEWEST_IN_TURN = 4
"""Held-out rows that follow each other, so that what is remembered counts."""


EXAMPLES_AT_ONCE = 256
"""Batches are cut from chunks of this many examples, because numpy's calls cost more than their work on few."""

TOKENS_AT_ONCE = 4096
"""Tokens that go through the model at once where all of a text is measured."""


class Batches:
    """All batches of a training.

    Args:
        split: the text.
        tokenizer: its tokenizer.
        input_config: the rows' format.
        configs: the objectives' configs.
        objectives: the objectives built from them.
        seed: the run's seed.
        batch: rows of a batch, or tokens.
        micro_batch: rows, or tokens, of each part that a batch is handed out in.
        idle: objectives that nothing is hidden, moved or replaced for: they have no targets of tokens, and second
            segments all follow the first.
        steps: those of the training, where what is drawn depends on how far it is; None: as at its end.
        first_batch: the share of the rows that the first batch has, from which they grow evenly.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        input_config: InputConfig,
        configs: Sequence[ObjectiveConfig],
        objectives: Sequence[Objective],
        seed: int,
        batch: int | TokenBatch,
        micro_batch: int | TokenBatch,
        idle: Collection[str] = (),
        steps: int | None = None,
        first_batch: float = 1.0,
    ) -> None:
        self.split, self.tokenizer, self.objectives, self.seed = split, tokenizer, objectives, seed
        # Each leaves alone what those before it have taken: the order in which they are listed is to change nothing.
        turns = sorted(
            zip(configs, objectives, strict=True),
            key=lambda pair: (not pair[0].reads_rows, pair[0].moves, pair[0].kind),
        )
        self.in_turn = [each for config, each in turns if config.relates_segments or config.kind not in idle]
        self.versions = next((config.versions for config in configs if config.versions is not None), None)
        related = [
            AsTheyAre() if config.kind in idle else cast(Relation, objective)
            for config, objective in zip(configs, objectives, strict=True)
            if config.relates_segments
        ]
        marks: RowMarks = next((config.row_marks for config in configs if config.row_marks != "ends"), "ends")
        self.format: Format = input_config.build(split, tokenizer, marks, related[0] if related else None)
        self.parallel = input_config.parallel
        if self.format.size == 0:
            raise UserError(_nothing(input_config, bool(related)))
        self.by_tokens: TokenOrder | None = None
        self.batch, self.micro_batch = 1, 1
        if isinstance(batch, TokenBatch):
            assert isinstance(micro_batch, TokenBatch)
            self.by_tokens = TokenOrder(cast(Uneven, self.format).lengths, batch.tokens, seed)
            self.micro_tokens = micro_batch.tokens
        else:
            assert isinstance(micro_batch, int)
            self.batch, self.micro_batch = batch, micro_batch
        self.course = Course(self.batch, steps, first_batch)
        self._chunk: tuple[int, list[list[Batch]]] = (-1, [])
        self._steps_a_chunk = max(1, EXAMPLES_AT_ONCE // self.batch)

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
        source, target = row_lengths(self.objectives, round(text))
        return float(source + target) if source else text

    @property
    def tokens_per_step(self) -> float:
        """Mean number of tokens of a whole batch, padding not counted."""
        rows = self.batch if self.by_tokens is None else self.format.size / self.by_tokens.batches
        return self.tokens_per_example * rows

    def step(self, step: int) -> list[Batch]:
        """The batch of one step, in parts of `micro_batch` rows or tokens."""
        if self.by_tokens is not None:
            examples, epoch = self.by_tokens.examples_of(step)
            parts_of = self.by_tokens.parts(examples, self.micro_tokens)
            progress = self.course.progress(np.full(len(examples), step))
            return self.make(examples, np.full(len(examples), epoch), parts=parts_of, progress=progress)
        chunk, place = divmod(step, self._steps_a_chunk)
        if self._chunk[0] != chunk:
            self._chunk = (chunk, self._made(chunk))
        return self._chunk[1][place]

    @cached_property
    def lanes(self) -> Lanes:
        """The lanes of rows that continue each other.

        Raises:
            UserError: the text is too short for so many.
        """
        return Lanes(self.format, self.batch, self.seed)

    def _made(self, chunk: int) -> list[list[Batch]]:
        """The batches of the steps of a chunk, each in its parts."""
        first, count = chunk * self._steps_a_chunk, self._steps_a_chunk
        bounds = self.course.bounds(first, count)
        if self.format.advance is not None:
            indices, epochs = self.lanes.examples_of(first, count)
        else:
            indices, epochs = examples_of(int(bounds[0]), int(bounds[-1] - bounds[0]), self.format.size, self.seed)
        progress = self.course.progress(np.repeat(np.arange(first, first + count), np.diff(bounds)))
        parts = step_parts(bounds, self.micro_batch)
        made = iter(self.make(indices, epochs, parts=[cut for own in parts for cut in own], progress=progress))
        return [[next(made) for _ in own] for own in parts]

    def fixed(self, examples: int) -> list[Batch]:
        """Parts that never change: examples spread evenly over the split, their draws fixed whatever the run's seed.

        Rows that continue each other do so here, too: in `FIXED_LANES` lanes at most, or fewer where that would leave
        each of them fewer than `FEWEST_IN_TURN` of the examples.
        """
        return [part for rows in self.fixed_rows(examples) for part in self.make(*rows[:2], seed=0, parts=rows[2])]

    def whole(self) -> Iterator[Batch]:
        """Parts with all of the split once and in its order, their draws fixed as those of `fixed`.

        Rows that continue each other follow each other in one lane, the last one filled up with padding; those that are
        read from both ends in the lanes of `fixed`.
        """
        size = self.format.size
        if self.format.directions > 1 or self.by_tokens is not None:  # read from both ends, or in parts of its own
            rows_of_each: Iterable[FixedRows] = self.fixed_rows(size)
        elif self.format.advance is not None:
            rows_of_each = _in_order(size + self.format.left_over, 1)
        else:
            rows_of_each = _in_order(size, max(1, int(TOKENS_AT_ONCE // self.format.tokens_per_example)))
        for indices, epochs, parts in rows_of_each:
            yield from self.make(indices, epochs, seed=0, parts=parts)

    def fixed_rows(self, examples: int) -> Iterator[FixedRows]:
        """The rows of `fixed`, as they are made together: their indices, their epochs, and the parts if they differ."""
        indices = spread(examples, self.format.size)
        if self.format.advance is not None:
            directions = self.format.directions
            lanes = directions * max(1, min(FIXED_LANES, len(indices) // FEWEST_IN_TURN) // directions)
            steps = max(1, len(indices) // lanes)
            order = Lanes(self.format, lanes, seed=0).examples_of(0, steps)
            yield *order, [(step * lanes, (step + 1) * lanes) for step in range(steps)]
        elif self.by_tokens is not None:
            for low, high in self.by_tokens.parts(indices, self.micro_tokens):
                yield indices[low:high], np.zeros(high - low, np.int64), [(0, high - low)]
        else:
            yield indices, np.zeros_like(indices), None

    def make(
        self,
        indices: NDArray[np.int64],
        epochs: NDArray[np.int64],
        seed: int | None = None,
        parts: Sequence[tuple[int, int]] | None = None,
        progress: NDArray[np.float64] | None = None,
    ) -> list[Batch]:
        """Batches of these examples, in parts of `micro_batch` rows; `parts`: one, in parts between these places.

        `progress` is the share of the training that is done before each of them is read; None: all of it.
        """
        draws = Draws(self.seed if seed is None else seed, epochs, indices)
        if self.versions is not None:
            draws = draws.static(self.versions)
        examples = self.format.examples(indices, draws)
        examples.progress = progress
        if self.by_tokens is not None:
            trim(examples)
        drawn = {o.name: o.targets(examples, self.split, self.tokenizer, draws) for o in self.in_turn}
        own = examples.ids.shape[1]
        length = own if examples.visible is None else examples.visible.shape[1]
        targets = {o.name: drawn.get(o.name, no_targets()).in_rows_of(own, length) for o in self.objectives}
        made = []
        for begin, end in parts or part_bounds(len(indices), self.batch, self.micro_batch):
            documents = examples.documents[begin:end]
            packed, padded = bool((documents > 1).any()), bool((documents == 0).any())
            source_real = None if examples.source_real is None else examples.source_real[begin:end]
            source = None
            if examples.source_ids is not None and source_real is not None:
                all_real = bool(source_real.all())
                source = Source(
                    torch.from_numpy(examples.source_ids[begin:end]),
                    None if all_real else torch.from_numpy(source_real),
                )
            queries = None
            if examples.query_positions is not None and examples.visible is not None:
                own = examples.query_positions[begin:end], examples.visible[begin:end]
                queries = Queries(*(torch.from_numpy(part) for part in own))
            backwards = None if examples.backwards is None else torch.from_numpy(examples.backwards[begin:end])
            prefix = None if examples.prefix is None else torch.from_numpy(examples.prefix[begin:end])
            follows = None if examples.follows is None else torch.from_numpy(examples.follows[begin:end])
            within = {}
            for name, target in targets.items():
                places = length * target.directions  # of one example
                low, high = np.searchsorted(target.rows, [begin * places, end * places])
                within[name] = (
                    torch.from_numpy(target.rows[low:high] - begin * places),
                    torch.from_numpy(target.labels[low:high]),
                )
            made.append(
                Batch(
                    ids=torch.from_numpy(examples.ids[begin:end]),
                    segments=None if examples.segments is None else torch.from_numpy(examples.segments[begin:end]),
                    real=torch.from_numpy(documents > 0) if padded and not packed else None,
                    documents=torch.from_numpy(documents) if packed else None,
                    targets=within,
                    tokens=int((documents > 0).sum()) + (0 if source_real is None else int(source_real.sum())),
                    source=source,
                    queries=queries,
                    backwards=backwards,
                    prefix=prefix,
                    follows=follows,
                    advance=self.format.advance,
                )
            )
        return made


def _nothing(rows: InputConfig, related: bool) -> str:
    """Why a text has not one row."""
    if related or isinstance(rows, SentencePairConfig):
        return (
            f"the corpus has no two sentences of one document that fit into a row of {rows.length} tokens; raise "
            "input.length, or prepare documents of several sentences"
        )
    return "the corpus has no example of two tokens or more; prepare more text"


def _in_order(size: int, rows: int) -> Iterator[FixedRows]:
    """All of so many examples as they come, some at a time, in parts of so many rows."""
    for begin in range(0, size, EXAMPLES_AT_ONCE):
        indices = np.arange(begin, min(begin + EXAMPLES_AT_ONCE, size))
        bounds = [(low, min(low + rows, len(indices))) for low in range(0, len(indices), rows)]
        yield indices, np.zeros_like(indices), bounds


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


def ahead(make: Callable[[int], Made], start: int, stop: int, depth: int = 4) -> Iterator[Made]:
    """`make(start)`, ..., `make(stop - 1)`, made in a thread that stays up to `depth` results ahead.

    An exception in the thread is raised here; leaving the loop early stops the thread.
    """
    made: queue.Queue[tuple[Made | None, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def offer(item: tuple[Made | None, BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                made.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for step in range(start, stop):
                if stopped.is_set():
                    return
                offer((make(step), None))
        except BaseException as error:  # handed to the loop, which raises it
            offer((None, error))

    thread = threading.Thread(target=work, name="batches", daemon=True)
    thread.start()
    try:
        for _ in range(start, stop):
            item, error = made.get()
            if error is not None:
                raise error
            yield cast(Made, item)
    finally:
        stopped.set()
        thread.join()
