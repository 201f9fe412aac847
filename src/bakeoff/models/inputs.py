"""What a model is given besides its tokens: a source to be read before, and the rows of a second stream."""

from typing import NamedTuple

from torch import Tensor


class Source(NamedTuple):
    """What a sequence-to-sequence model reads before it writes."""

    ids: Tensor
    """(B, U) token ids."""
    real: Tensor | None = None
    """(B, U) True for tokens, False for padding; None where there is no padding."""


class Queries(NamedTuple):
    """The second stream: rows that know a position, but not the token at it (XLNet: Yang et al. 2019, section 2.3)."""

    positions: Tensor
    """(B, N) the positions."""
    visible: Tensor
    """(B, T + N, T) True where a row, a token's or a query's, may see a token; tokens see themselves in any case."""


Inputs = tuple[
    Tensor, Tensor | None, Tensor | None, Tensor | None, Source | None, Queries | None, Tensor | None, Tensor | None
]
"""The arguments of a model's `forward`, in its order."""
