"""What a model reads: tokens, a source to be read before, and the rows of a second stream."""

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


class Inputs(NamedTuple):
    """Rows of tokens as a model reads them, with what tells tokens apart."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None = None
    """(B, T) segment ids; None is segment 0 everywhere."""
    real: Tensor | None = None
    """(B, T) True for tokens, False for padding; None where there is no padding."""
    documents: Tensor | None = None
    """(B, T) document of each token, 0 for padding, where a row holds several documents, which then do not see each
    other; `real` is not needed with it."""
    source: Source | None = None
    """The source that the encoder of a sequence-to-sequence model reads."""
    queries: Queries | None = None
    """N rows of the second stream, for models whose mixers have two."""
    backwards: Tensor | None = None
    """(B,) True for rows that are a text from its end to its beginning; None: none is. For `relative_attention`, whose
    distances are those of the text."""
    prefix: Tensor | None = None
    """(B,) how many tokens at the beginning of each row are seen by all tokens of it, as far as those of its document;
    None: none. For causal models whose mixers attend."""
    wanted: Tensor | None = None
    """(B, M) places of each row, of tokens or behind them of the second stream, whose hidden states are asked for.
    None: those of all."""
    vectors: Tensor | None = None
    """(B, T, E) what the tables of another model's embedding hold for the tokens, for models without."""
