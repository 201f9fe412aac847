"""The segments of pairs, and what an objective that relates them makes of them."""

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
    """(N,) where the first segment starts in the split's tokens."""
    first_length: NDArray[np.int64]
    """(N,) its number of tokens, at least 1."""
    second: NDArray[np.int64]
    """(N,) where the second segment starts."""
    second_length: NDArray[np.int64]
    """(N,) its number of tokens, at least 1."""
    single: bool = False
    """Whether each segment is one sentence, else a run of them."""

    def swapped(self, chosen: NDArray[np.bool_]) -> "TwoSegments":
        """The pairs, with first and second segment exchanged in the (N,) chosen ones."""
        return TwoSegments(
            np.where(chosen, self.second, self.first),
            np.where(chosen, self.second_length, self.first_length),
            np.where(chosen, self.first, self.second),
            np.where(chosen, self.first_length, self.second_length),
            self.single,
        )


class Relation(Protocol):
    """How an objective arranges the two segments of a pair."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """The arranged pairs, each of at most `longest` tokens, and (N,) the label of each."""
        ...


class AsTheyAre:
    """The relation in stages that do not train the objective of the segments: B follows A."""

    def arrange(
        self, pairs: TwoSegments, split: Split, longest: int, draws: Draws
    ) -> tuple[TwoSegments, NDArray[np.int64]]:
        """The pairs themselves, all labelled 0."""
        return pairs, np.zeros(len(pairs.first), np.int64)
