"""The rows that an input format makes of a corpus, before any objective has chosen its targets.

Shapes: N examples, T length, U length of the source.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.randomness.draws import Draws


@dataclass
class Examples:
    """Rows of token ids, and facts about each position."""

    ids: NDArray[np.int64]
    """(N, T) token ids; objectives that corrupt their input change them in place."""
    documents: NDArray[np.int32]
    """(N, T) document ids within each row, counted from 1; 0 is padding."""
    sources: NDArray[np.int64]
    """(N, T) the place of each id among the split's tokens; -1 for special tokens and padding."""
    segments: NDArray[np.int64] | None = None
    """(N, T) segment ids, or None for segment 0 everywhere."""
    following: NDArray[np.int64] | None = None
    """(N, T) the next id in the text, where the format is a running text."""
    source_ids: NDArray[np.int64] | None = None
    """(N, U) token ids that the encoder reads, where an objective has made a source and a target of the text."""
    source_real: NDArray[np.bool_] | None = None
    """(N, U) True for tokens of the source, False for padding."""
    query_positions: NDArray[np.int64] | None = None
    """(N, P) positions of the rows of a second stream, where an objective has one."""
    visible: NDArray[np.bool_] | None = None
    """(N, T + P, T) True where the row of a token or of a query may see a token."""
    relation: NDArray[np.int64] | None = None
    """(N,) label of the relation between the segments, where an objective asked for it."""
    prefix: NDArray[np.int64] | None = None
    """(N,) number of tokens at the beginning of each row that all tokens of the row see, where an objective asked for
    it.
    """
    context: NDArray[np.int64] | None = None
    """(N,) number of tokens at the beginning of each row that are read but are no targets; None: none."""
    reuse: int = 0
    """Number of tokens at the beginning of a row that see none of the later ones, because the next row remembers their
    states.
    """
    backwards: NDArray[np.bool_] | None = None
    """(N,) True for rows that read the text from its end; None: none does."""
    follows: NDArray[np.bool_] | None = None
    """(N,) True where the second segment continues the first, although no objective asks for it; None: `relation` says
    it, all do, or there are no segments.
    """
    progress: NDArray[np.float64] | None = None
    """(N,) the share of the training that is done before each row is read; None: all of it, or the rows are measured.
    """
    measured: bool = False
    """The rows are those on which a loss is measured, and not trained on."""
    taken: NDArray[np.bool_] | None = None
    """(N, T) True for tokens that an objective has hidden or moved, and that later objectives leave alone; None:
    none.
    """

    def take(self, chosen: NDArray[np.bool_]) -> None:
        """Mark (N, T) chosen tokens as taken, so that later objectives leave them alone."""
        self.taken = chosen if self.taken is None else self.taken | chosen


class Format(Protocol):
    """An input format laid over one split of a corpus."""

    size: int
    """Number of examples of an epoch."""
    left_over: int = 0
    """Number of further examples for the text that an epoch leaves over because it does not fill an example."""
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
