"""The share of positions that a recipe's rows fill, and the share of the text that they read. N rows, T length."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.batches import BatchSizes
from bakeoff.batching.order import Order
from bakeoff.batching.rows import TargetDrawing, TextRows
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


class RowUse(Config):
    """The use of positions and text by the rows of an epoch, or by the held-out rows that the loss is measured on."""

    filled: float
    """Share of the positions in rows and source rows that hold tokens; the others are padding."""
    read: float | None
    """Share of the text's tokens that stand in a row; None for pairs, and for rows that continue each other without
    an end."""
    repeated: float
    """Share of the text's tokens that stand in several rows; a token that is only read as context is not counted."""
    sampled: bool
    """Whether the measurement took stretches from many places of the text, because the text is large."""
    measured_tokens: int
    """Tokens of the measured text."""


def row_use_of(recipe: Recipe, module: PretrainingModel, corpus: Corpus, seed: int, held_out: bool) -> RowUse | None:
    """Measure all rows of the first epoch, or the rows that the held-out loss is measured on.

    Memory stays flat, and no batches are made: only the objectives that change the rows' lengths draw their targets.

    Returns:
        None if the text is large and the stretches that represent it have no row of this kind.
    """
    split = corpus.validation if held_out else corpus.train
    if not held_out and len(split.tokens) > MEASURED_TOKENS:
        split = Extract(split, MEASURED_TOKENS)
    size = recipe.training.batch
    try:
        drawing = TargetDrawing(recipe.objective, module.objectives, recipe.idle)
        text, sizes = TextRows(split, corpus.tokenizer, recipe.input, drawing, seed), BatchSizes(size, size)
        order = sizes.order(text.format, sizes.course(), seed)
        return _measured(text, order, recipe.training.validation_examples if held_out else None)
    except UserError:
        if isinstance(split, Extract):
            return None
        raise


def _measured(text: TextRows, order: Order, held_out: int | None) -> RowUse:
    """Measure a number of held-out examples, or, if `held_out` is None, all examples of an epoch.

    An epoch is measured in the batches of training, because rows that objectives rewrite are padded to the longest.
    """
    positions = tokens = 0
    sources: list[NDArray[np.int64]] = []
    rewriting = [each for each in text.drawing.objectives if isinstance(each, Rewriting)]
    for chosen in order.epoch() if held_out is None else order.spread(held_out):
        draws = Draws(text.seed if held_out is None else 0, chosen.epochs, chosen.indices)
        examples = text.examples(chosen.indices, draws, order.even)
        fresh = examples.sources >= 0
        if examples.context is not None:
            fresh &= np.arange(fresh.shape[1]) >= examples.context[:, None]
        sources.append(examples.sources[fresh])
        for objective in rewriting:
            cast(Objective, objective).targets(examples, text.split, text.tokenizer, draws)
        for padding_mask in (
            examples.padding_mask,
            None if examples.row.source is None else examples.row.source.padding_mask,
        ):
            if padding_mask is not None:
                positions, tokens = positions + padding_mask.size, tokens + int(padding_mask.sum())
    counts = np.unique(np.concatenate(sources), return_counts=True)[1]
    total = len(text.split.tokens)
    known = not text.parallel and text.format.advance is None
    return RowUse(
        filled=tokens / positions,
        read=len(counts) / total if known else None,
        repeated=int((counts > 1).sum()) / total if known else 0.0,
        sampled=isinstance(text.split, Extract),
        measured_tokens=total,
    )
