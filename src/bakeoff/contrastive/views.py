"""Two views of each text, from whose vectors nothing but the text is to be seen; pure functions of seed and text.

Shapes: N texts, R the most tokens of a view.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.texts import TokenTexts
from bakeoff.randomness.draws import Draws

SHORTEST = 4
"""The fewest tokens of a crop; a text that is no longer than this is its own view."""

Rows = list[NDArray[np.int64]]
"""The token ids of a view of each text."""


class Views:
    """A function that draws two views of each text.

    Args:
        config: how views are drawn.
        room: R, the most tokens of a view.
    """

    def __init__(self, config: ContrastConfig, room: int) -> None:
        self.config, self.room = config, room

    def __call__(
        self, texts: TokenTexts, indices: NDArray[np.int64], epochs: NDArray[np.int64], seed: int, stream: str = ""
    ) -> tuple[Rows, Rows]:
        """The first and the second view of each of some texts.

        Args:
            texts: all texts.
            indices: (N,) the numbers of the texts.
            epochs: (N,) how often each text was read before.
            seed: the seed.
            stream: words before the names of the random numbers, so that others are drawn.
        """
        draws = Draws(seed, epochs, indices)
        begins = draws.uniform(f"{stream}span", 1)[:, 0]
        spans = [self._span(texts[int(index)], begin) for index, begin in zip(indices, begins, strict=True)]
        first, second = (self._views(spans, draws, f"{stream}{side}") for side in ("first", "second"))
        return first, second

    def _span(self, ids: NDArray[np.int64], begin: float) -> NDArray[np.int64]:
        """The part of a text that both views are taken of."""
        if self.config.views == "whole":
            return ids[: self.room]
        start = int(begin * (max(0, len(ids) - self.config.span) + 1))
        return ids[start : start + self.config.span]

    def _views(self, spans: Rows, draws: Draws, side: str) -> Rows:
        crops, kept = draws.uniform(f"{side} view", 2), draws.uniform(f"{side} deletion", self.room)
        return [self._view(*each) for each in zip(spans, crops, kept, strict=True)]

    def _view(self, ids: NDArray[np.int64], crop: NDArray[np.float64], kept: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.config.views == "crops" and len(ids) > SHORTEST:
            low, high = self.config.crop
            length = round((low + (high - low) * crop[0]) * len(ids))
            length = min(max(length, SHORTEST), self.room, len(ids))
            start = int(crop[1] * (len(ids) - length + 1))
            ids = ids[start : start + length]
        ids = ids[: self.room]
        stays = kept[: len(ids)] >= self.config.deletion
        return ids[stays] if stays.any() else ids[:1]


def same_texts(indices: NDArray[np.int64], first: Rows, second: Rows) -> NDArray[np.bool_]:
    """(N, N) True where two texts are one text, or a view of one has the tokens of a view of the other.

    A batch over the end of an epoch may have a text twice, and short texts can have equal crops; as negatives they
    would be pushed from their own like.
    """
    texts = indices[:, None] == indices
    numbers: dict[bytes, int] = {}
    one, other = (
        np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in side]) for side in (first, second)
    )
    pairs: Sequence[NDArray[np.bool_]] = [a[:, None] == b for a in (one, other) for b in (one, other)]
    alike: NDArray[np.bool_] = np.logical_or.reduce([texts, *pairs])
    return alike
