"""What an input format makes of a corpus: rows of ids, before any objective has chosen its targets.

Shapes: N examples, T length, U length of the source.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.randomness.draws import Draws


@dataclass
class Examples:
    """Rows of token ids and what is known of each position."""

    ids: NDArray[np.int64]
    """(N, T) token ids; objectives that corrupt their input change them in place."""
    documents: NDArray[np.int32]
    """(N, T) document of each token within its row, counted from 1; 0 is padding."""
    sources: NDArray[np.int64]
    """(N, T) where in the split's tokens each id comes from; -1 for special tokens and padding."""
    segments: NDArray[np.int64] | None = None
    """(N, T) segment ids, or None for segment 0 everywhere."""
    following: NDArray[np.int64] | None = None
    """(N, T) the id that comes next in the text, where the format is a running text."""
    source_ids: NDArray[np.int64] | None = None
    """(N, U) token ids that the encoder reads, where an objective has made a source and a target of the text."""
    source_real: NDArray[np.bool_] | None = None
    """(N, U) True for tokens of the source, False for padding."""
    query_positions: NDArray[np.int64] | None = None
    """(N, P) places of the rows of a second stream, where an objective has one."""
    visible: NDArray[np.bool_] | None = None
    """(N, T + P, T) True where a token's or a query's row may see a token."""
    relation: NDArray[np.int64] | None = None
    """(N,) label of how the second segment relates to the first, where an objective asked for it."""
    prefix: NDArray[np.int64] | None = None
    """(N,) how many tokens at the beginning of each row are seen by all, where an objective has asked for it."""
    context: NDArray[np.int64] | None = None
    """(N,) how many tokens at the beginning are there to be read, and no targets; None: none."""
    reuse: int = 0
    """How many tokens at the beginning know nothing of those behind them, for the next row remembers their states."""
    backwards: NDArray[np.bool_] | None = None
    """(N,) True for rows that read the text from its end; None: none does."""
    follows: NDArray[np.bool_] | None = None
    """(N,) True where the second segment goes on with the first, which nothing asks for; None: `relation` says it, or
    all do, or there are no segments."""
    progress: NDArray[np.float64] | None = None
    """(N,) the share of the training that is done before each row is read; None: all of it, or held-out text."""
    taken: NDArray[np.bool_] | None = None
    """(N, T) True for tokens that an objective has hidden or moved, which others leave alone; None where none has."""

    def take(self, chosen: NDArray[np.bool_]) -> None:
        """Keep (N, T) tokens from other objectives."""
        self.taken = chosen if self.taken is None else self.taken | chosen


class Format(Protocol):
    """An input format laid over one split of a corpus."""

    size: int
    """How many examples an epoch has."""
    left_over: int = 0
    """How many more examples hold what does not fill one that an epoch has."""
    tokens_per_example: float
    """Mean number of tokens of an example, padding not counted."""
    advance: int | None = None
    """How many tokens behind an example's first one the next example of the text begins, where rows are to be read in
    turn; None: they stand alone."""
    directions: int = 1
    """2 where the second half of the examples is the text read from its end."""

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """The examples of these indices; what is random in them comes from the draws."""
        ...
