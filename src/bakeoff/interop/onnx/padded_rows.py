"""Recurrent networks over rows with padding, in operations whose shapes do not depend on the content of rows.

Shapes: B batch, T length, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from bakeoff.interop.onnx.steps import with_steps
from bakeoff.models.mixers.recurrent import Recurrent
from bakeoff.row import Row


class PaddedRows(nn.Module):
    """The cells of a recurrent mixer over rows with padding before or after, in place of `Recurrent._by_document`.

    Rows are rotated so that each begins with its first token (backwards: its last) and padding is read last, where it
    affects no token. Therefore a bidirectional network is split into two networks of one direction.
    """

    def __init__(self, mixer: Recurrent) -> None:
        super().__init__()
        cells = mixer.cells
        self.forwards: nn.Module = cells
        self.backwards: nn.Module | None = None
        if cells.bidirectional:
            self.forwards, self.backwards = _one_direction(cells, ""), _one_direction(cells, "_reverse")

    def forward(self, x: Tensor, row: Row[Tensor]) -> Tensor:
        """(B, T, D) outputs, zero at padding; the tokens of each row must be contiguous."""
        padding_mask = row.padding_mask
        assert padding_mask is not None
        length = x.shape[1]
        steps = torch.arange(length, device=x.device)[None]
        first = (padding_mask.long().cumsum(1) == 0).sum(1, keepdim=True)
        y = self._turned(self.forwards, x, _turned_by(steps + first, length), _turned_by(steps - first, length))
        if self.backwards is not None:
            last = first + padding_mask.sum(1, keepdim=True) - 1
            order = _turned_by(last - steps, length)  # its own inverse
            y = torch.cat([y, self._turned(self.backwards, x, order, order)], dim=-1)
        return y * padding_mask[..., None]

    @staticmethod
    def _turned(cells: nn.Module, x: Tensor, order: Tensor, back: Tensor) -> Tensor:
        """The outputs for tokens read in `order`, (B, T) positions, put back in place by `back`."""
        y: Tensor = cells(x.gather(1, order[..., None].expand(-1, -1, x.shape[2])))[0]
        return y.gather(1, back[..., None].expand(-1, -1, y.shape[2]))


def _turned_by(positions: Tensor, length: int) -> Tensor:
    """Positions modulo length, for -length <= position < 2 length; ONNX has no remainder by a free length."""
    positions = torch.where(positions >= length, positions - length, positions)
    return torch.where(positions < 0, positions + length, positions)


def _one_direction(cells: nn.RNNBase, ending: str) -> nn.Module:
    """A network of one direction with the weights of that direction."""
    projection = {"proj_size": cells.proj_size} if cells.proj_size else {}
    network: Any = type(cells)
    made: nn.Module = network(cells.input_size, cells.hidden_size, bias=cells.bias, batch_first=True, **projection)
    made.load_state_dict({name: getattr(cells, name + ending) for name, _ in made.named_parameters()})
    with_steps(made)
    return made


def with_padded_rows(graph: nn.Module) -> None:
    """Replace the reading of padded rows in all recurrent mixers of a module; outputs stay the same."""
    for mixer in graph.modules():
        if isinstance(mixer, Recurrent):
            object.__setattr__(mixer, "_by_document", PaddedRows(mixer))  # not a submodule: state_dict stays
