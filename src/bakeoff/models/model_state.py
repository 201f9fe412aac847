"""What a model remembers of texts that it goes on reading. Shapes: B rows, U length of the source, D width."""

from typing import NamedTuple

from torch import Tensor

from bakeoff.models.part import State, map_state


class ModelState(NamedTuple):
    """What a model remembers between chunks of a text; a value, not changed by going on from it."""

    tokens: int
    """How many tokens it has read."""
    layers: State
    """What its layers remember."""
    source: Tensor | None
    """(B, U, D) the encoder's output."""
    source_mask: Tensor | None
    """(B, 1, 1, U) True where the source is a token."""
    gaps: Tensor | None = None
    """(B,) how many of the `tokens` are padding before each row's first one; None: none is."""
    in_place: bool = False
    """Whether `extend` may overwrite the state: it writes the next keys and values behind those of the state."""


def chosen_rows(state: ModelState, rows: Tensor) -> ModelState:
    """The state of some rows, each as often as it is named by the (B,) indices."""
    source, mask, gaps = (
        None if each is None else each.index_select(0, rows) for each in (state.source, state.source_mask, state.gaps)
    )
    layers = map_state(state.layers, lambda tensor: tensor.index_select(0, rows))
    return state._replace(layers=layers, source=source, source_mask=mask, gaps=gaps)
