"""Values of attention given to and mixed with those of other layers in bfloat16 on a CPU, in one pass each way."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import BLOCK, run


class GivenValues(torch.autograd.Function):
    """A projection and the values in it; see `bakeoff.ops.mixed_values.given_values`."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, channels: int) -> tuple[Tensor, Tensor]:
        """(B, T, C) to (B, T, C), which is the same, and (B, T, H d_v)."""
        ctx.channels = channels
        return projected.view_as(projected), projected[..., -channels:].contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        """The gradient of the projection."""
        above, of_values = (each.contiguous() for each in upstream)
        of_projected, width = torch.empty_like(above), above.shape[-1]
        given = above, of_values, of_projected, width, ctx.channels
        run("given_values_gradient", above.numel() // width, width, *given)
        return of_projected, None


class MixedValues(torch.autograd.Function):
    """A projection whose values are mixed where they lie; see `bakeoff.ops.mixed_values.mixed_values`."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, first: Tensor, share: Tensor) -> Tensor:
        """(B, T, C) contiguous, (B, T, H d_v), and (1,) float32."""
        width, channels, first = projected.shape[-1], first.shape[-1], first.contiguous()
        difference = torch.empty_like(first)
        rows = projected.numel() // width
        run("mixed_values", rows, channels, projected, first, difference, share, width, channels)
        ctx.save_for_backward(difference, share)
        return projected.view_as(projected)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the projection, of the first values and of the share."""
        difference, share = ctx.saved_tensors
        above, width, channels = upstream[0].contiguous(), upstream[0].shape[-1], difference.shape[-1]
        rows = above.numel() // width
        blocks = -(-rows // BLOCK)
        of_projected, of_first = torch.empty_like(above), torch.empty_like(difference)
        of_share = share.new_empty(blocks)
        made = of_projected, of_first, of_share
        run("mixed_values_gradient", blocks, BLOCK * width, rows, above, difference, *made, share, width, channels)
        return of_projected, of_first, of_share.sum(0, keepdim=True)
