"""What objectives have in common that make a source and a target of a row of text.

Shapes: N examples, L tokens of a row of text, U of a source, T of a target.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.objectives.objective import Scoring, Targets, TokenObjectiveConfig
from bakeoff.tokenizer.tokenizer import Tokenizer

ROUNDED = 8
"""Rows without a fixed length are padded to a multiple of this, so that there are few shapes."""


class SequenceToSequenceConfig(TokenObjectiveConfig):
    """An objective for models with an encoder and a decoder."""

    row_marks: ClassVar[RowMarks] = "none"
    rewrites: ClassVar[bool] = True
    writes: ClassVar[bool] = True
    scoring: ClassVar[Scoring | None] = "target"


def teach(examples: Examples, target: NDArray[np.int64], real: NDArray[np.bool_], tokenizer: Tokenizer) -> Targets:
    """Make the examples' rows the decoder's input: the start token, then the target but for its last token.

    Args:
        examples: changed in place.
        target: (N, T) what the decoder is to write, the separator at its end.
        real: (N, T) True for tokens of the target, False for padding behind them.
        tokenizer: whose special tokens are used.

    Returns:
        All tokens of the target.
    """
    shifted = np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=tokenizer.start)
    examples.ids = np.where(real, shifted, tokenizer.pad)
    examples.documents = real.astype(np.int32)
    examples.sources = np.full(target.shape, -1, np.int64)
    examples.following = None
    rows = np.flatnonzero(real)
    return Targets(rows, target.ravel()[rows])


def gather(
    values: NDArray[np.int64], kept: NDArray[np.bool_], length: int, pad: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values that are kept, moved to the left of each row, in rows of `length`; and True where there are any."""
    order = np.argsort(~kept, axis=1, kind="stable")[:, :length]
    real = np.take_along_axis(kept, order, 1)
    return np.where(real, np.take_along_axis(values, order, 1), pad), real


def rounded(kept: NDArray[np.bool_]) -> int:
    """A length that all rows of kept values fit into, a multiple of `ROUNDED`."""
    return -(-int(kept.sum(1).max(initial=1)) // ROUNDED) * ROUNDED


def with_end(
    values: NDArray[np.int64], kept: NDArray[np.bool_], end: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One more column, which holds the token that ends a text."""
    return np.pad(values, ((0, 0), (0, 1)), constant_values=end), np.pad(kept, ((0, 0), (0, 1)), constant_values=True)


def ranks(score: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, L) the place of each score in the rising order of its row; among equal ones the first comes first."""
    found = np.empty_like(score)
    places = np.broadcast_to(np.arange(score.shape[1]), score.shape)
    np.put_along_axis(found, np.argsort(score, axis=1, kind="stable"), places, axis=1)
    return found
