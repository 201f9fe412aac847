"""Measurement of one recipe at one length: the times of a training step, of inference and of generation."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as Inner
from tokenizers import models

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.generation.writer import writer_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.allocator import ran_out
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, autocast, peak_memory_since_reset, reset_peak_memory, resolve_precision
from bakeoff.resources.replays import require_replays
from bakeoff.row import Row
from bakeoff.throughput.results import Measurement
from bakeoff.tokenizer.special_tokens import SPECIAL_TOKENS
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.trainer.step import NORM, optimize
from bakeoff.training.pretraining import Pretraining

STEPS = 1_000_000
"""Number of steps of the schedule; measured steps lie in its warm-up, where weights hardly change."""

KINDS = ("training", "inference", "latency", "generation")
"""The measured times, in the order of measurement."""


class Cell:
    """The measurement of one recipe at one length.

    Args:
        recipe: the recipe.
        length: T, tokens of a row.
        rows: B, rows of a step.
        vocabulary: V, number of tokens.
        device: the device to measure on.
        most_seconds: the longest step in seconds; a longer one is reported as too long, and not repeated.
    """

    def __init__(
        self, recipe: Recipe, length: int, rows: int, vocabulary: int, device: torch.device, most_seconds: float
    ) -> None:
        self.recipe, self.length, self.rows, self.vocabulary = recipe, length, rows, vocabulary
        self.device, self.most_seconds = device, most_seconds
        self.precision = resolve_precision(recipe.training.precision, device)
        self.problem: str | None = None
        self.too_long = False
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, Callable[[int], float]] = {}
        self.tokens = 0
        self.parameters: int | None = None
        self.memory: int | None = None
        longest = recipe.model.longest_input
        needed = length + any(part.rewrites for part in recipe.objective)  # a target has an end token more
        self.position_table = needed if longest is not None and longest < needed else None

    def prepare(self) -> None:
        """Build the model and call everything once or twice; a failure becomes the cell's `problem`."""
        try:
            self._prepare()
        except UserError as error:
            self._give_up(str(error))
        except (RuntimeError, MemoryError) as error:
            self._give_up_memory(error)

    def time(self, kind: str, turn: int) -> float:
        """Seconds of one call; NaN if the cell has a problem."""
        if self.problem is None:
            try:
                return self.calls[kind](turn)
            except (RuntimeError, MemoryError) as error:
                self._give_up_memory(error)
        return float("nan")

    def result(self) -> Measurement:
        """The figures, computed from the median times in `seconds`."""
        seconds = {} if self.problem else self.seconds

        def rate(kind: str) -> float | None:
            return self.tokens / seconds[kind] if kind in seconds else None

        def milliseconds(kind: str) -> float | None:
            return 1000 * seconds[kind] if kind in seconds else None

        return Measurement(
            recipe=self.recipe.name,
            length=self.length,
            rows=self.rows,
            parameters=self.parameters,
            position_table=self.position_table,
            training_tokens_per_second=rate("training"),
            inference_tokens_per_second=rate("inference"),
            latency_ms=milliseconds("latency"),
            generation_ms=milliseconds("generation"),
            memory_bytes=None if self.problem else self.memory,
            problem=self.problem,
        )

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.calls.clear()  # which frees the model

    def _give_up_memory(self, error: Exception) -> None:
        """Give up if memory is exhausted."""
        if not ran_out(error):
            raise error
        self._give_up("out of memory")

    def _prepare(self) -> None:
        recipe = self._fitted()
        reset_peak_memory(self.device)
        module = PretrainingModel(recipe, self.vocabulary).to(self.device)
        if recipe.training.compile == "graphs":
            require_replays(recipe, self.device)
        if recipe.training.compile in (True, "graphs"):
            module.compile_layers(replayed=recipe.training.compile == "graphs")
        self.parameters = module.parameter_count()
        whole, single = (self._batch(recipe, module, rows) for rows in (self.rows, 1))
        self.tokens = whole.tokens
        self.calls = {
            "training": self._training(recipe, module, whole),
            "inference": self._reading(module, whole),
            "latency": self._reading(module, single),
        }
        self.calls["training"](0)
        if self.calls["training"](0) > self.most_seconds:
            self.too_long = True
            self._give_up(f"a step takes more than {self.most_seconds:g} s")
            return
        self.memory = peak_memory_since_reset(self.device)  # of two steps: the second has the optimizer's moments, too
        if recipe.model.causal:
            with contextlib.suppress(UserError):  # no head for next tokens
                self.calls["generation"] = self._writing(module, single)
        for kind in KINDS[1:]:
            if kind in self.calls:
                self.calls[kind](0)

    def _fitted(self) -> Recipe:
        """The recipe with rows of this length, each a separate document, without memory of other rows."""
        changes: dict[str, Any] = {
            "input.length": self.length,
            "training.batch": self.rows,
            "training.micro_batch": None,
            "training.curriculum": [],
        }
        if self.recipe.input.continues:
            changes["input"] = {"format": "blocks", "length": self.length, "isolate": False}
        elif self.recipe.input.isolates:
            changes["input.isolate"] = False
        if self.position_table is not None:
            changes["model.embedding.length"] = self.position_table
        return self.recipe.fitted(STEPS, changes)

    def _batch(self, recipe: Recipe, module: PretrainingModel, rows: int) -> Batch:
        tokenizer = numbered_tokenizer(self.vocabulary)
        text = RandomText(rows, self.length, self.vocabulary, recipe.input.parallel)
        drawing = TargetDrawing(recipe.objective, module.objectives, recipe.idle)
        batches = Batches([TextRows(text, tokenizer, recipe.input, drawing, seed=0)], BatchSizes(rows, rows), seed=0)
        (batch,) = batches.fixed(rows)
        return batch.to(self.device)

    def _training(self, recipe: Recipe, module: PretrainingModel, batch: Batch) -> Callable[[int], float]:
        """A function that times a training step: forward, backward and optimizer."""
        unit = Pretraining(recipe, module, Placement(self.device, self.precision))

        def step(turn: int) -> float:
            module.train()
            began = time.perf_counter()
            float(optimize(unit, [batch], turn)[NORM])  # waits for the device
            return time.perf_counter() - began

        return step

    def _reading(self, module: PretrainingModel, batch: Batch) -> Callable[[int], float]:
        """A function that times inference, ids to hidden states, without heads and without a second stream."""

        def read(turn: int) -> float:
            module.eval()
            began = time.perf_counter()
            with torch.inference_mode(), autocast(self.device, self.precision):
                hidden = module.model(batch.row._replace(queries=None))[0]
            float(hidden[-1, -1, -1])
            return time.perf_counter() - began

        return read

    def _writing(self, module: PretrainingModel, batch: Batch) -> Callable[[int], float]:
        """A function that times the generation of a token: the forward pass of a row's last token, and its logits."""
        writer, row = writer_of(module), batch.row
        module.eval()
        with torch.inference_mode():
            _, state = module.model(Row(row.ids[:, :-1], source=row.source), module.model.start(1))

        def write(turn: int) -> float:
            module.eval()
            began = time.perf_counter()
            with torch.inference_mode():
                scores, _ = writer(Row(row.ids[:, -1:]), state)
                float(scores.max())
            return time.perf_counter() - began

        return write


DOCUMENTS = 2
"""Number of documents; next-sentence prediction needs two, since its negatives come from another document."""

FRAME = 3
"""Number of special tokens of a segment pair; lengths of documents are multiples of the rest, so that all rows are
full."""


class RandomText(Split):
    """Uniformly random ids in memory. Every token is a word and a sentence, so that segments end where a row ends.

    With `pairs`, the text has pairs whose sources and targets fill a row each.
    """

    def __init__(self, rows: int, length: int, vocabulary: int, pairs: bool = False) -> None:
        """Text for at least `rows` rows of `length` tokens, without the special tokens, which begin the vocabulary."""
        documents = rows if pairs else DOCUMENTS
        each = 2 * (length - 1) if pairs else 2 * (rows + 1) * (length - FRAME)
        count = documents * each
        self.tokens = np.random.default_rng(0).integers(len(SPECIAL_TOKENS), vocabulary, count, dtype=np.uint32)
        self.sentences = np.arange(0, count + 1, length - 1 if pairs else 1, dtype=np.int64)
        self.documents = np.arange(documents + 1, dtype=np.int64) * each
        self.originals = np.arange(documents, dtype=np.int64)
        self._words = np.full((count + 7) // 8, 255, dtype=np.uint8)
        self.bytes = count
        self.counts = SplitCounts(
            tokens=count,
            sentences=len(self.sentences) - 1,
            documents=documents,
            words=count,
            bytes=count,
            unigram_entropy=float(np.log(vocabulary)),
            target_tokens=count // 2 if pairs else None,
            target_bytes=count // 2 if pairs else None,
        )


def numbered_tokenizer(size: int) -> Tokenizer:
    """A tokenizer with `size` tokens: the special tokens, and numbers as words."""
    words = {word: i for i, word in enumerate([*SPECIAL_TOKENS, *map(str, range(size - len(SPECIAL_TOKENS)))])}
    return Tokenizer(Inner(models.WordLevel(words, unk_token="[UNK]")))
