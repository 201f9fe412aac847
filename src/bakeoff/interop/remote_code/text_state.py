"""The generation state of a model for rows with padding."""

import torch
from torch import Tensor

from bakeoff.interop.remote_code.base import Rows
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState, map_state
from bakeoff.row import Row


class TextState:
    """The state of a model after the tokens read, one state for all rows of the same length.

    Padding is never read, so that rows of different lengths need different states.
    """

    is_compileable = False

    def __init__(self) -> None:
        self.groups: list[tuple[Tensor, ModelState]] = []
        """For each length the (B,) indices of rows, and their state."""
        self.columns = 0
        """Number of columns of the input that have been read, padding included."""

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Number of columns that have been read, as transformers asks for it."""
        return self.columns

    def reorder_cache(self, rows: Tensor) -> None:
        """Replace the state of row b by that of row `rows[b]`, (B,) indices, as beam search chooses."""
        chosen = []
        for members, state in self.groups:
            matches = (rows[:, None] == members).nonzero()
            if len(matches):
                chosen.append((matches[:, 0], rows_of(state, matches[:, 1])))
        self.groups = chosen

    def read(self, model: Model, rows: Rows, prefix: bool) -> Tensor:
        """(B, T, D) hidden states of tokens that continue the rows, zeros at padding.

        Args:
            model: the model.
            rows: (B, T) tokens.
            prefix: whether the first tokens of a row attend to each other in both directions.

        Raises:
            ValueError: a row becomes longer than the model's positions.
        """
        length = rows.ids.shape[1]
        counts = torch.full_like(rows.ids[:, 0], length) if rows.padding_mask is None else rows.padding_mask.sum(1)
        groups, hidden = [], None
        for members, state in self.groups:
            for count in counts[members].unique().tolist():
                inside = (counts[members] == count).nonzero()[:, 0]
                alike, before = members[inside], rows_of(state, inside)
                if count:
                    ids = rows.ids[alike, :count]
                    longest = model.config.longest_input
                    if longest is not None and before.tokens + count > longest:
                        raise ValueError(f"a text of more than the {longest} tokens that the model has positions for")
                    shown = torch.full_like(ids[:, 0], count) if prefix and not before.tokens else None
                    states, before = model(Row(ids, prefix=shown), before)
                    if hidden is None:
                        hidden = states.new_zeros(len(rows.ids), length, states.shape[-1])
                    hidden[alike, :count] = states
                groups.append((alike, before))
        self.groups = groups
        self.columns += length
        assert hidden is not None, "nothing but padding"
        return rows.restored(hidden)


def rows_of(state: ModelState, rows: Tensor) -> ModelState:
    """The state of the rows with the (B,) indices, which may repeat."""
    mask = state.source_mask
    return ModelState(
        state.tokens,
        map_state(state.layers, lambda tensor: tensor.index_select(0, rows)),
        None if state.source is None else state.source.index_select(0, rows),
        None if mask is None else mask.index_select(0, rows),
    )
