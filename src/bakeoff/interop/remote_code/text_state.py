"""What a model remembers of texts that it has read, whose rows may have padding."""

import torch
from torch import Tensor

from bakeoff.interop.remote_code.base import Rows
from bakeoff.models.model import Model
from bakeoff.models.model_state import ModelState
from bakeoff.models.part import map_state


class TextState:
    """What the model remembers of rows that it has read: its own state, for rows that are equally long together.

    A row's padding is never read, so that rows of different lengths are different states.
    """

    is_compileable = False

    def __init__(self) -> None:
        self.groups: list[tuple[Tensor, ModelState]] = []
        """(B,) numbers of rows, and what is remembered of them."""
        self.columns = 0
        """How many columns of the input have been read, padding included."""

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """How many columns have been read."""
        return self.columns

    def reorder_cache(self, rows: Tensor) -> None:
        """Let row b go on from what is remembered of row `rows[b]`, as beam search chooses."""
        chosen = []
        for own, state in self.groups:
            places = (rows[:, None] == own).nonzero()
            if len(places):
                chosen.append((places[:, 0], rows_of(state, places[:, 1])))
        self.groups = chosen

    def read(self, model: Model, rows: Rows, prefix: bool) -> Tensor:
        """(B, T, D) hidden states of tokens that follow what has been read; padding has zeros.

        Args:
            model: it.
            rows: (B, T) the tokens.
            prefix: the first ones are seen from both sides.
        """
        length = rows.ids.shape[1]
        counts = torch.full_like(rows.ids[:, 0], length) if rows.real is None else rows.real.sum(1)
        groups, hidden = [], None
        for own, state in self.groups:
            for count in counts[own].unique().tolist():
                inside = (counts[own] == count).nonzero()[:, 0]
                alike, before = own[inside], rows_of(state, inside)
                if count:
                    ids = rows.ids[alike, :count]
                    longest = model.config.longest_input
                    if longest is not None and before.tokens + count > longest:
                        raise ValueError(f"a text of more than the {longest} tokens that the model has positions for")
                    shown = torch.full_like(ids[:, 0], count) if prefix and not before.tokens else None
                    states, before = model.extend(ids, before, prefix=shown)
                    if hidden is None:
                        hidden = states.new_zeros(len(rows.ids), length, states.shape[-1])
                    hidden[alike, :count] = states
                groups.append((alike, before))
        self.groups = groups
        self.columns += length
        assert hidden is not None, "nothing but padding"
        return rows.restored(hidden)


def rows_of(state: ModelState, rows: Tensor) -> ModelState:
    """The state of some rows, each as often as it is named by the (B,) indices."""
    mask = state.source_mask
    return ModelState(
        state.tokens,
        map_state(state.layers, lambda tensor: tensor.index_select(0, rows)),
        None if state.source is None else state.source.index_select(0, rows),
        None if mask is None else mask.index_select(0, rows),
    )
