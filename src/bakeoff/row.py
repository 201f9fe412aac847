"""The row: all that a model may read of a row of text, declared once, from the format that makes it to the layer.

Formats and objectives make rows of numpy arrays; batches, models and the context of their layers hold the same rows of
tensors. Whatever is done to all signals alike (cutting, padding, moving, turning round) follows their declaration.

Shapes: B rows, T tokens of a row, U tokens of its source, N rows of a second stream, M wanted positions, E width of
vectors.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints

import torch
from torch import Tensor

from bakeoff.machine.transfer import sent
from bakeoff.spans import Spans

Array = TypeVar("Array")
"""The type of a signal's values: an array where rows are made, a tensor in a model."""


class Signal(NamedTuple):
    """The layout of a signal."""

    axes: str = ""
    """A letter for each axis after that of the rows: T tokens, N rows of the second stream, S tokens and then the rows
    of the second stream.
    """
    fill: int | None = 0
    """The value at padding; None: the id of the token for padding."""


class Source(NamedTuple, Generic[Array]):
    """The source of a sequence-to-sequence model, read before it writes; its T is U."""

    ids: Annotated[Array, Signal("T", None)]
    """(B, U) token ids."""
    padding_mask: Annotated[Array | None, Signal("T")] = None
    """(B, U) padding mask, True for tokens; None where there is no padding."""


class Queries(NamedTuple, Generic[Array]):
    """The second stream: rows that know a position, but not the token at it (XLNet: Yang et al. 2019, section 2.3)."""

    positions: Annotated[Array, Signal("N")]
    """(B, N) the position of each row."""
    visible: Annotated[Array, Signal("ST")]
    """(B, T + N, T) True where the row of a token or of a query may see a token; tokens see themselves in any case."""


class Row(NamedTuple, Generic[Array]):
    """Rows of tokens, with everything that a model may read of them.

    A new signal is one field here: what makes it (a format or an objective) sets it, and what reads it (an embedding, a
    mixer) has it as `context.row.NAME`.
    """

    ids: Annotated[Array, Signal("T", None)]
    """(B, T) token ids."""
    segments: Annotated[Array | None, Signal("T")] = None
    """(B, T) segment ids; None is segment 0 everywhere."""
    padding_mask: Annotated[Array | None, Signal("T")] = None
    """(B, T) padding mask, True for tokens; None where there is no padding, or `documents` says it."""
    documents: Annotated[Array | None, Signal("T")] = None
    """(B, T) document ids, counted from 1 in each row, 0 for padding; tokens see only their own document. None: each
    row is one document.
    """
    source: Source[Array] | None = None
    """The source for the encoder of a sequence-to-sequence model."""
    queries: Queries[Array] | None = None
    """The second stream, for models whose mixers have two."""
    backwards: Annotated[Array | None, Signal()] = None
    """(B,) True for rows that read the text from its end; None: no row does. For `relative_attention`, whose distances
    are those of the text.
    """
    prefix: Annotated[Array | None, Signal()] = None
    """(B,) number of tokens at the beginning of each row that all tokens of the row see, within their document; None:
    none. For causal models whose mixers attend.
    """
    causal: Annotated[Array | None, Signal()] = None
    """(B,) True for rows in which no token sees a later one; None: `behind` says it of all. For encoders, whose other
    rows are read from both sides.
    """
    follows: Annotated[Array | None, Signal()] = None
    """(B,) True where the second segment continues the first, although no objective predicts it; None: all do, or an
    objective says it, or there are no segments. For display alone.
    """
    wanted: Annotated[Array | None, Signal("M")] = None
    """(B, M) positions of each row, among the tokens and then the second stream, whose hidden states are wanted. None:
    all positions.
    """
    vectors: Annotated[Array | None, Signal("TE")] = None
    """(B, T, E) vectors of the tokens from the embedding of another model, for models without a token table."""
    spans: Spans | None = None
    """The spans of documents and of padding, on the CPU, where the batch knows them; None: they are worked out on the
    device from `owners`."""
    behind: bool = False
    """No token of these rows sees a later one, although the model is an encoder."""
    forwards: bool = False
    """The states of a model with two directions are wanted in the forward one alone."""

    @property
    def owners(self) -> Array | None:
        """(B, T) the number of each token's document, or True for a token; 0 or False for padding."""
        return self.padding_mask if self.documents is None else self.documents

    def to(self, device: torch.device) -> "Row[Tensor]":
        """The rows on a device; for tensors alone."""
        moved: Row[Tensor] = mapped(self, partial(sent, device=device))
        return moved


def turned(row: Row[Any]) -> Row[Any]:
    """Rows of tensors that are read from their ends: what is said of each token, and the wanted positions, reversed."""
    values: Iterator[Any] = (each.flip(1) if isinstance(each, Tensor) and each.dim() > 1 else each for each in row)
    wanted = None if row.wanted is None else row.ids.shape[1] - 1 - row.wanted
    spans = None if row.spans is None else row.spans.turned()
    return Row(*values)._replace(wanted=wanted, spans=spans)


_SIGNALS: dict[type, dict[str, Signal]] = {}
"""What `signals` has said of each class, since reading annotations takes longer than making a small batch."""


def signals(of: type) -> dict[str, Signal]:
    """The layout of each field of a class that is declared as a signal, by the field's name."""
    if of not in _SIGNALS:
        hints = get_type_hints(of, include_extras=True)
        layouts = ((name, getattr(hint, "__metadata__", ())) for name, hint in hints.items())
        _SIGNALS[of] = {name: layout[0] for name, layout in layouts if layout and isinstance(layout[0], Signal)}
    return _SIGNALS[of]


def mapped(row: Any, function: Callable[[Any], Any]) -> Any:
    """A row, or a source or second stream, with `function` applied to the values of each signal that it has."""
    known = signals(type(row))
    values = {}
    for name, value in row._asdict().items():
        if name in known:
            values[name] = None if value is None else function(value)
        else:
            values[name] = mapped(value, function) if isinstance(value, tuple) else value
    return type(row)(**values)
