"""How well a recipe's rows use their places, and how much of the text they read. N rows, T length."""

from collections.abc import Collection, Iterable, Iterator
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.target_drawing import TargetDrawing
from bakeoff.batching.token_batches import TokenOrder, trim
from bakeoff.config import Config
from bakeoff.corpus.extract import Extract
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import Objective, Rewriting
from bakeoff.randomness.draws import Draws
from bakeoff.recipe import Recipe

MEASURED_TOKENS = 1 << 19
"""Tokens of text on which an epoch is measured; a larger text is represented by stretches from many places."""


Rows = tuple[NDArray[np.int64], Draws]
"""(N,) indices of rows, and their random numbers."""


class Packing(Config):
    """What an epoch makes of the text; or, of held-out text, what the rows do that the loss is measured on."""

    filled: float
    """Share of the places of rows and sources that hold tokens; the rest is padding."""
    read: float | None
    """Share of the text's tokens that stand in a row; None for pairs, and for rows that continue each other, which read
    on and on."""
    repeated: float
    """Share of the text's tokens that stand in several, those not counted that are only read as context."""
    sampled: bool
    """Whether this was measured on stretches from many places of the text, because it is large."""
    measured_tokens: int
    """Tokens of the text on which it was measured."""


def packing_of(
    recipe: Recipe, module: PretrainingModel, corpus: Corpus, seed: int, held_out: bool, idle: Collection[str] = ()
) -> Packing | None:
    """Measure all rows of the first epoch; or those that the held-out loss is measured on.

    In flat memory, and without making batches: only the objectives that change the rows' lengths are asked.

    Returns:
        None where the text is large, and what stands for it has no row of this kind.
    """
    split = corpus.validation if held_out else corpus.train
    if not held_out and len(split.tokens) > MEASURED_TOKENS:
        split = Extract(split, MEASURED_TOKENS)
    size = recipe.training.batch
    try:
        drawing = TargetDrawing(recipe.objective, module.objectives, idle)
        batches = Batches(split, corpus.tokenizer, recipe.input, drawing, BatchSizes(size, size), seed)
        return _measured(batches, _fixed(batches, recipe) if held_out else _epoch(batches))
    except UserError:
        if isinstance(split, Extract):
            return None
        raise


def _fixed(batches: Batches, recipe: Recipe) -> Iterator[Rows]:
    for indices, epochs, _ in batches.order.spread(recipe.training.validation_examples):
        yield indices, Draws(0, epochs, indices)


def _epoch(batches: Batches) -> Iterator[Rows]:
    """As many rows at once as in training: those that objectives rewrite are padded to the longest of them."""
    for indices, epochs in batches.order.epoch():
        yield indices, Draws(batches.seed, epochs, indices)


def _measured(batches: Batches, rows: Iterable[Rows]) -> Packing:
    places = tokens = 0
    sources: list[NDArray[np.int64]] = []
    rewriting = [each for each in batches.drawing.objectives if isinstance(each, Rewriting)]
    for indices, draws in rows:
        examples = batches.format.examples(indices, draws)
        if isinstance(batches.order, TokenOrder):
            trim(examples)
        fresh = examples.sources >= 0
        if examples.context is not None:
            fresh &= np.arange(fresh.shape[1]) >= examples.context[:, None]
        sources.append(examples.sources[fresh])
        for objective in rewriting:
            cast(Objective, objective).targets(examples, batches.split, batches.tokenizer, draws)
        for real in (examples.documents > 0, examples.source_real):
            if real is not None:
                places, tokens = places + real.size, tokens + int(real.sum())
    counts = np.unique(np.concatenate(sources), return_counts=True)[1]
    total = len(batches.split.tokens)
    told = not batches.parallel and batches.format.advance is None
    return Packing(
        filled=tokens / places,
        read=len(counts) / total if told else None,
        repeated=int((counts > 1).sum()) / total if told else 0.0,
        sampled=isinstance(batches.split, Extract),
        measured_tokens=total,
    )
