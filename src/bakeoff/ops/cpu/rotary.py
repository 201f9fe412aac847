"""Rotary positions, written directly into their output."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Rotation(torch.autograd.Function):
    """The rotation of x by waves, (T, d / 2) each, with a third of torch's operations. The gradient rotates back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """(B, H, T, d) x turned forwards."""
        ctx.waves = cosine, sine
        return _turned(x, cosine, sine)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        """The gradient, turned backwards."""
        cosine, sine = ctx.waves
        return _turned(upstream[0], cosine, -sine), None, None


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    new_first, new_second = y.chunk(2, dim=-1)
    torch.mul(first, cosine, out=new_first).sub_(second * sine)
    torch.mul(second, cosine, out=new_second).add_(first * sine)
    return y
