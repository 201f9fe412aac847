"""The rows that an input format makes of a corpus, before any objective has chosen its targets.

Shapes: N examples, T length.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.randomness.draws import Draws
from bakeoff.row import Row, Signal


@dataclass
class Examples:
    """Rows, and what objectives know of them besides."""

    row: Row[NDArray[Any]]
    """The N rows; `documents` says which positions are padding. Objectives that corrupt their input change the ids in
    place, and set the signals that they add.
    """
    sources: Annotated[NDArray[np.int64], Signal("T", -1)]
    """(N, T) the position of each id among the split's tokens; -1 for special tokens and padding."""
    following: Annotated[NDArray[np.int64] | None, Signal("T", -1)] = None
    """(N, T) the next id in the text, where the format is a running text."""
    relation: Annotated[NDArray[np.int64] | None, Signal()] = None
    """(N,) label of the relation between the segments, where an objective asked for it."""
    context: Annotated[NDArray[np.int64] | None, Signal()] = None
    """(N,) number of tokens at the beginning of each row that are read but are no targets; None: none."""
    progress: Annotated[NDArray[np.float64] | None, Signal()] = None
    """(N,) the share of the training that is done before each row is read; None: all of it, or the rows are measured.
    """
    taken: Annotated[NDArray[np.bool_] | None, Signal("T")] = None
    """(N, T) True for tokens that an objective has hidden or moved, and that later objectives leave alone; None:
    none.
    """
    reuse: int = 0
    """Number of tokens at the beginning of a row that see none of the later ones, because the next row remembers their
    states.
    """
    measured: bool = False
    """The rows are those on which a loss is measured, and not trained on."""

    @property
    def padding_mask(self) -> NDArray[np.bool_]:
        """(N, T) True for tokens, False for padding."""
        assert self.row.documents is not None
        padding_mask: NDArray[np.bool_] = self.row.documents > 0
        return padding_mask

    def take(self, chosen: NDArray[np.bool_]) -> None:
        """Mark (N, T) chosen tokens as taken, so that later objectives leave them alone."""
        self.taken = chosen if self.taken is None else self.taken | chosen


class Format(Protocol):
    """An input format laid over one split of a corpus."""

    size: int
    """Number of examples of an epoch."""
    left_over: int = 0
    """Number of further examples for the text that an epoch leaves over because it does not fill an example."""
    separators: int | None = None
    """Number of separators in an epoch that a model which reads forwards predicts, where each text ends that begins
    after one; None: one for each document.
    """
    tokens_per_example: float
    """Mean number of tokens of an example, padding not counted."""
    advance: int | None = None
    """Number of tokens by which the next example of the text begins further on, where rows are to be read in turn;
    None: rows stand alone.
    """
    directions: int = 1
    """2 where the second half of the examples is the text read from its end, else 1."""

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """The examples at these indices; random choices come from the draws."""
        ...


class Uneven(Format, Protocol):
    """An input format whose rows have different lengths, known beforehand."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(S, K) numbers of tokens of each example's row, and of its source if it has one, special tokens included."""
        ...
