"""How the heads of attention lie in a projection, and what is done to them before they are multiplied."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor


class ProjectedHeads(NamedTuple):
    """The heads in a projection, (B, T, H (2 d_k + d_v)): queries, then keys, then values."""

    number: int
    """H."""
    widths: Sequence[int]
    """d_k, d_k and d_v."""
    gains: tuple[Tensor, Tensor] | None = None
    """(d_k,) of the norms of queries and keys; None: there are none."""
    epsilon: float = 0.0
    """Epsilon of the norms."""
    start: int = 0
    """Position of the first token."""
    base: float | None = None
    """Base of the rotary positions, see `bakeoff.ops.rotary.rotate`; None: there are none."""
