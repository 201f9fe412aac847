"""What a layer is told: when it is built (its place) and when it runs (its context)."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True)
class Place:
    """Where a part stands in the model; a config builds its part from it."""

    width: int
    """D, the width of the hidden states."""
    causal: bool
    """A position may look at itself and earlier ones only."""
    dropout: float
    """The model's dropout, which a part may override."""
    norm_epsilon: float
    """Epsilon of the layer norms."""
    layer: int = 0
    """Index of the layer, for settings that differ by layer."""

    def at(self, layer: int) -> "Place":
        """The same place in another layer."""
        return replace(self, layer=layer)


class Context(NamedTuple):
    """What every layer of one forward pass may need; made once a pass."""

    real: Tensor | None = None
    """(B, T) True for tokens, False for padding; None where there is no padding or `documents` says it."""
    documents: Tensor | None = None
    """(B, T) document of each token, 0 for padding; tokens see their own document only. None: one document a row."""
    attention_mask: Tensor | None = None
    """(B, 1, T or 1, T) True where the position of the third axis may attend to that of the fourth."""
