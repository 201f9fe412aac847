"""The two segments of a pair, and an objective's rearrangement of them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.randomness.draws import Draws


@dataclass
class TwoSegments:
    """Two runs of tokens for each of N examples."""

    first: NDArray[np.int64]
    """(N,) the start of the first segment among the split's tokens."""
    first_length: NDArray[np.int64]
    """(N,) the number of tokens of the first segment, at least 1."""
    second: NDArray[np.int64]
    """(N,) the start of the second segment among the split's tokens."""
    second_length: NDArray[np.int64]
    """(N,) the number of tokens of the second segment, at least 1."""
    single: bool = False
    """Whether each segment is one sentence; otherwise it is a run of sentences."""

    def swapped(self, chosen: NDArray[np.bool_]) -> "TwoSegments":
        """The pairs with first and second segment exchanged where (N,) `chosen` is True."""
        return TwoSegments(
            np.where(chosen, self.second, self.first),
            np.where(chosen, self.second_length, self.first_length),
            np.where(chosen, self.first, self.second),
            np.where(chosen, self.first_length, self.second_length),
            self.single,
        )


class Relation(Protocol):
    """An objective's arrangement of the two segments of a pair."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """The arranged pairs, each of at most `longest` tokens, and (N,) the label of each."""
        ...


class AsTheyAre:
    """The relation in stages without an objective of the segments: B follows A."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """The pairs themselves, all labelled 0."""
        return pairs, np.zeros(len(pairs.first), np.int64)
