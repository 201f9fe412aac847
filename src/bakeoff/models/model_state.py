"""A model's memory of texts that it continues to read. Shapes: B rows, U length of the source, D width."""

from typing import NamedTuple

from torch import Tensor

from bakeoff.models.part import State, map_state


class ModelState(NamedTuple):
    """A model's memory between chunks of a text; a value, which reading on does not change unless `in_place`."""

    tokens: int
    """Number of tokens read so far."""
    layers: State
    """The state of the layers of the last stack."""
    source: Tensor | None
    """(B, U, D) the encoder's output."""
    source_mask: Tensor | None
    """(B, 1, 1, U) padding mask of the source, True for tokens."""
    gaps: Tensor | None = None
    """(B,) number of the `tokens` that are padding before each row's first one; None: none is."""
    in_place: bool = False
    """Whether `extend` may overwrite the state: it writes the next keys and values behind those of the state."""


def chosen_rows(state: ModelState, rows: Tensor) -> ModelState:
    """The state with the rows that the (B,) indices name; a row may be named more than once."""
    source, mask, gaps = (
        None if each is None else each.index_select(0, rows) for each in (state.source, state.source_mask, state.gaps)
    )
    layers = map_state(state.layers, lambda tensor: tensor.index_select(0, rows))
    return state._replace(layers=layers, source=source, source_mask=mask, gaps=gaps)
