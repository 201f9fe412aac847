"""The inputs of a model: tokens, the source of an encoder, and the rows of a second stream."""

from typing import NamedTuple

from torch import Tensor


class Source(NamedTuple):
    """The source of a sequence-to-sequence model, read before it writes."""

    ids: Tensor
    """(B, U) token ids."""
    real: Tensor | None = None
    """(B, U) padding mask, True for tokens; None where there is no padding."""


class Queries(NamedTuple):
    """The second stream: rows that know a position, but not the token at it (XLNet: Yang et al. 2019, section 2.3)."""

    positions: Tensor
    """(B, N) the position of each row."""
    visible: Tensor
    """(B, T + N, T) True where the row of a token or of a query may see a token; tokens see themselves in any case."""


class Inputs(NamedTuple):
    """Rows of tokens as a model reads them, with masks and ids of documents and segments."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None = None
    """(B, T) segment ids; None is segment 0 everywhere."""
    real: Tensor | None = None
    """(B, T) padding mask, True for tokens; None where there is no padding."""
    documents: Tensor | None = None
    """(B, T) document ids, 0 for padding, for rows of several documents, which do not see each other; `real` is not
    needed with them.
    """
    source: Source | None = None
    """The source for the encoder of a sequence-to-sequence model."""
    queries: Queries | None = None
    """N rows of the second stream, for models whose mixers have two."""
    backwards: Tensor | None = None
    """(B,) True for rows that read the text from its end; None: no row does. For `relative_attention`, whose distances
    are those of the text.
    """
    prefix: Tensor | None = None
    """(B,) number of tokens at the beginning of each row that all tokens of the row see, within their document; None:
    none. For causal models whose mixers attend.
    """
    wanted: Tensor | None = None
    """(B, M) places of each row, among the tokens and then the second stream, whose hidden states are wanted. None: all
    places.
    """
    vectors: Tensor | None = None
    """(B, T, E) vectors of the tokens from the embedding of another model, for models without a token table."""
