"""Recurrent networks of rows with padding, in operations whose shapes do not depend on what a row holds.

Shapes: B batch, T length, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from bakeoff.interop.onnx.steps import with_steps
from bakeoff.models.mixers.recurrent import Recurrent


class PaddedRows(nn.Module):
    """The cells of a mixer over rows with padding before or behind, in place of `Recurrent._by_document`.

    Rows are turned so that each begins with its first token, or backwards with its last, and nothing comes of padding,
    which is read last. That takes two networks of one direction with the weights of one of two.
    """

    def __init__(self, mixer: Recurrent) -> None:
        super().__init__()
        cells = mixer.cells
        self.forwards: nn.Module = cells
        self.backwards: nn.Module | None = None
        if cells.bidirectional:
            self.forwards, self.backwards = _one_direction(cells, ""), _one_direction(cells, "_reverse")

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """(B, T, D) outputs, zero for padding, of (B, T) whether each is a token; tokens stand together."""
        length = x.shape[1]
        steps = torch.arange(length, device=x.device)[None]
        first = (real.long().cumsum(1) == 0).sum(1, keepdim=True)
        y = self._turned(self.forwards, x, _turned_by(steps + first, length), _turned_by(steps - first, length))
        if self.backwards is not None:
            last = first + real.sum(1, keepdim=True) - 1
            order = _turned_by(last - steps, length)  # which undoes itself
            y = torch.cat([y, self._turned(self.backwards, x, order, order)], dim=-1)
        return y * real[..., None]

    @staticmethod
    def _turned(cells: nn.Module, x: Tensor, order: Tensor, back: Tensor) -> Tensor:
        """The outputs of tokens that are read in that order, (B, T) places, put back to where they were."""
        y: Tensor = cells(x.gather(1, order[..., None].expand(-1, -1, x.shape[2])))[0]
        return y.gather(1, back[..., None].expand(-1, -1, y.shape[2]))


def _turned_by(places: Tensor, length: int) -> Tensor:
    """Places from -length to 2 length - 1 within the row; a graph has no remainder by a length that is not known."""
    places = torch.where(places >= length, places - length, places)
    return torch.where(places < 0, places + length, places)


def _one_direction(cells: nn.RNNBase, ending: str) -> nn.Module:
    """A network of one direction with the weights of one of the two."""
    projection = {"proj_size": cells.proj_size} if cells.proj_size else {}
    network: Any = type(cells)
    made: nn.Module = network(cells.input_size, cells.hidden_size, bias=cells.bias, batch_first=True, **projection)
    made.load_state_dict({name: getattr(cells, name + ending) for name, _ in made.named_parameters()})
    with_steps(made)
    return made


def with_padded_rows(graph: nn.Module) -> None:
    """Have all recurrent mixers of a module read such rows so; they compute the same."""
    for mixer in graph.modules():
        if isinstance(mixer, Recurrent):
            object.__setattr__(mixer, "_by_document", PaddedRows(mixer))  # no part of what is trained or saved
