"""The root-mean-square norm of attention's queries and keys, and of states in bfloat16."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def head_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """Divide by the root mean square: g x / sqrt(mean_i x_i^2 + epsilon) over the last dimension.

    The norm is computed in the gain's precision. On a CPU torch needs a dozen operations for the norm and thirty for
    its gradient, whose overhead in small models exceeds the arithmetic. The compiler sees torch's norm.

    Args:
        x: (..., d).
        gain: (d,).
        epsilon: added to the mean of the squares.

    Returns:
        (..., d) of the gain's type.
    """
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        return F.rms_norm(x.to(gain.dtype), gain.shape, gain, epsilon)
    result: Tensor = _HeadNorm.apply(x, gain, epsilon)  # type: ignore[no-untyped-call]
    return result


class _HeadNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
        precise = x.to(gain.dtype)
        scale = precise.pow(2).mean(-1, keepdim=True).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, gain, scale)
        return (precise * scale).mul_(gain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients dx = scale (u - n mean_i(u_i n_i)) and dg = sum(dy n), with n = x scale and u = g dy."""
        x, gain, scale = ctx.saved_tensors
        above = upstream[0]
        normed = x.to(gain.dtype) * scale
        product = above * normed
        of_gain = product.flatten(0, -2).sum(0)
        mean = product.mul_(gain).mean(-1, keepdim=True)
        of_x = (above * gain).addcmul_(normed, mean, value=-1).mul_(scale)
        return of_x.to(x.dtype), of_gain, None
