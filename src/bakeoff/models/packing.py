"""Rows of different lengths without their padding, for inference.

Shapes: B rows, T length, N tokens, M positions of a row that are wanted, D width.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Packing(NamedTuple):
    """The positions of tokens when rows are laid out one after the other, without padding, as one row of N tokens."""

    positions: Tensor
    """(N,) the position of each token in the B * T positions of the rows."""
    ranks: Tensor
    """(B, T) the position of each token among the N; padding has the position of a neighbour."""

    def packed(self, x: Tensor) -> Tensor:
        """(B, T, D) to (1, N, D)."""
        return x.flatten(0, 1).index_select(0, self.positions)[None]

    def padded(self, x: Tensor) -> Tensor:
        """(1, N, D) to (B, T, D), with some token's state at padding, for code that does not read padding."""
        rows: Tensor = x[0].index_select(0, self.ranks.flatten()).unflatten(0, self.ranks.shape)
        return rows

    def spread(self, x: Tensor) -> Tensor:
        """(1, N, D) to (B, T, D), zeros at padding."""
        flat = x.new_zeros(self.ranks.numel(), x.shape[-1]).index_copy_(0, self.positions, x[0])
        rows: Tensor = flat.unflatten(0, self.ranks.shape)
        return rows


def packing_of(padding_mask: Tensor) -> Packing:
    """The packing of rows, from their (B, T) padding mask, True for tokens."""
    flat = padding_mask.flatten()
    ranks = (flat.cumsum(0) - 1).clamp(min=0)
    return Packing(flat.nonzero()[:, 0], ranks.view(padding_mask.shape))


def at_positions(x: Tensor, wanted: Tensor, packing: Packing | None) -> Tensor:
    """(B, M, D) the states at (B, M) positions of rows x, which are (B, T, D), or (1, N, D) where they are packed."""
    if packing is not None:
        index = packing.ranks.gather(1, wanted).flatten()
        states: Tensor = x[0].index_select(0, index).unflatten(0, wanted.shape)
        return states
    return x.gather(1, wanted[..., None].expand(-1, -1, x.shape[-1]))


def worth_packing(x: Tensor) -> bool:
    """Whether rows are to be packed: on a CPU, outside of training, compilation and export."""
    if torch.is_grad_enabled() or x.device.type != "cpu":
        return False
    return not (torch.compiler.is_compiling() or torch.compiler.is_exporting())
