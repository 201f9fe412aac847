"""The divergence of the probabilities that scores give from those that are taught, over a large vocabulary.

Shapes: N rows, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def divergence(scores: Tensor, taught: Tensor, temperature: float = 1.0, weights: Tensor | None = None) -> Tensor:
    """T^2 sum_n w_n KL(p_n || softmax(s_n / T)), in nats (Hinton et al. 2015, arXiv:1503.02531, section 2).

    With T^2 the gradient, T w_n (softmax(s_n / T) - p_n), keeps its size at every temperature. It takes the memory of
    the probabilities, so that it can be taken only once.

    Args:
        scores: (N, V) s, unnormalised log-probabilities.
        taught: (N, V) p, probabilities, whose rows have the sum 1.
        temperature: T.
        weights: (N,) w; None: 1 for all.
    """
    loss: Tensor = _Divergence.apply(scores, taught, temperature, weights)  # type: ignore[no-untyped-call]
    return loss


class _Divergence(Function):
    """The sum over the rows, with its gradient."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, taught: Tensor, temperature: float, weights: Tensor | None) -> Tensor:
        """The sum in nats."""
        scaled = scores if temperature == 1 else scores / temperature
        logarithms = scaled.log_softmax(-1)
        # torch's kl_div and xlogy take five times as long on a CPU; where p is 0, so is its product with any number.
        least = torch.finfo(taught.dtype).tiny
        losses = taught.clamp_min(least).log_().sub_(logarithms).mul_(taught).sum(-1)
        ctx.gradient, ctx.temperature, ctx.weights = logarithms.exp_().sub_(taught), temperature, weights
        return temperature**2 * (losses if weights is None else losses * weights).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None]:
        """The scores' gradient."""
        gradient, ctx.gradient = ctx.gradient, None
        assert gradient is not None, "the gradient was taken already, and its memory used"
        if ctx.weights is not None:
            gradient.mul_(ctx.weights[:, None])
        return gradient.mul_(ctx.temperature * upstream[0]), None, None, None
