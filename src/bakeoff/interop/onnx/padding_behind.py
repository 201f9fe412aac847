"""Recurrent networks of rows with padding, in operations whose shapes do not depend on what a row holds.

Shapes: B batch, T length, D width.
"""

import torch
from torch import Tensor, nn

from bakeoff.models.mixers.recurrent import Recurrent


class PaddingBehind(nn.Module):
    """The cells of a mixer over rows whose padding stands behind, in place of `Recurrent._by_document`.

    Forwards nothing comes of padding, since it is read last; backwards each row begins at its last token. That takes
    two networks of one direction with the weights of one of two.
    """

    def __init__(self, mixer: Recurrent) -> None:
        super().__init__()
        cells = mixer.cells
        self.forwards: nn.Module = cells
        self.backwards: nn.Module | None = None
        if cells.bidirectional:
            self.forwards, self.backwards = _one_direction(cells, ""), _one_direction(cells, "_reverse")

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """(B, T, D) outputs, zero for padding, of (B, T) whether each is a token."""
        y: Tensor = self.forwards(x)[0]
        if self.backwards is not None:
            lengths = real.sum(1, keepdim=True)
            steps = torch.arange(x.shape[1], device=x.device)[None]
            turned = torch.where(steps < lengths, lengths - 1 - steps, steps)[..., None]  # and back again
            other = self.backwards(x.gather(1, turned.expand(-1, -1, x.shape[2])))[0]
            y = torch.cat([y, other.gather(1, turned.expand(-1, -1, other.shape[2]))], dim=-1)
        return y * real[..., None]


def _one_direction(cells: nn.RNNBase, ending: str) -> nn.Module:
    """A network of one direction with the weights of one of the two."""
    projection = {"proj_size": cells.proj_size} if cells.proj_size else {}
    made = type(cells)(cells.input_size, cells.hidden_size, bias=cells.bias, batch_first=True, **projection)
    made.load_state_dict({name: getattr(cells, name + ending) for name, _ in made.named_parameters()})
    return made


def with_padding_behind(graph: nn.Module) -> None:
    """Have all recurrent mixers of a module read such rows so; they compute the same."""
    for mixer in graph.modules():
        if isinstance(mixer, Recurrent):
            object.__setattr__(mixer, "_by_document", PaddingBehind(mixer))  # no part of what is trained or saved
