"""A convolution of a few taps, one kernel a channel, that hands each position its neighbours."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from bakeoff.models.context import Context
from bakeoff.models.part import last_inputs
from bakeoff.ops.short_convolution import short_convolution, tap_offsets

OWN_TAP = 0.5
"""Initial weight of a channel's own position."""


class NeighbourConvolution(nn.Module):
    """y[t, c] = sum_j w[c, j] x[t + offset_j, c] of each channel c; C channels, K taps.

    As in Primer's multi-dconv-head attention (So et al. 2021, arXiv:2109.08668, section 3), whose taps look at the
    present and the past; in encoders they are centred. As in its code (google-research, primer/t5_models.py), there is
    no bias and no residual connection, and taps begin at 1/2 for a channel's own position and at 1 / (2 K) for others.
    """

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, channels: int, kernel: int, causal: bool) -> None:
        super().__init__()
        self.kernel, self.causal = kernel, causal
        self.taps = nn.Parameter(torch.empty(channels, kernel))  # (C, K)
        nn.init.constant_(self.taps, OWN_TAP / kernel)
        with torch.no_grad():
            self.taps[:, kernel - 1 if causal else kernel // 2] = OWN_TAP  # the tap whose offset is 0

    def forward(self, x: Tensor, context: Context, left: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, T, C) to (B, T, C), where `left`, (B, K - 1, C), is the input before; and the `left` of the next tokens.

        Padding and other documents count as zeros.
        """
        if context.row.padding_mask is not None:
            x = x * context.row.padding_mask[..., None]
        behind = context.row.behind  # then a centred kernel is read up to the tap of the present token
        taps = self.taps[:, : self.kernel // 2 + 1] if behind else self.taps
        y = short_convolution(x, taps, causal=self.causal or behind, documents=context.row.documents, left=left)
        return y, last_inputs(left, x)

    def offsets(self) -> list[int]:
        """Distance of each tap from the output, in tokens; negative before it."""
        return tap_offsets(self.kernel, self.causal)

    def start(self, rows: int, like: Tensor) -> Tensor:
        """Zeros to the left of the first token."""
        return like.new_zeros(rows, self.kernel - 1, len(self.taps))

    def flops_per_token(self) -> int:
        """Floating-point operations of one token's forward pass."""
        return 2 * self.taps.numel()
