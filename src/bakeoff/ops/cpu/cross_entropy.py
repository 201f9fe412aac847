"""Cross-entropy over a large vocabulary, whose gradient takes the memory of the probabilities."""

from typing import Any

import torch
from torch import Tensor


class CrossEntropy(torch.autograd.Function):
    """The sum over N rows, see `bakeoff.ops.cross_entropy`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, smoothing: float, z_loss: float) -> Tensor:
        """The sum in nats, of (N, V) scores and (N,) labels."""
        probabilities = scores.softmax(-1)
        # The largest probability is 1 / sum exp(s - max s): the sum comes without another exponential.
        normaliser = scores.amax(-1) - probabilities.amax(-1).log()
        ctx.probabilities, ctx.labels, ctx.smoothing = probabilities, labels, smoothing
        ctx.slope = 1 + 2 * z_loss * normaliser if z_loss else None  # (N,) of the loss along the normaliser
        right = scores.gather(-1, labels[:, None])[:, 0]
        if smoothing:
            right = torch.lerp(right, scores.mean(-1), smoothing)
        if z_loss:
            normaliser = normaliser + z_loss * normaliser.square()
        return (normaliser - right).sum()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None, None]:
        """The scores' gradient, in the memory of their probabilities."""
        gradient, ctx.probabilities = ctx.probabilities, None
        assert gradient is not None, "the gradient was taken already, and its memory used"
        if ctx.slope is not None:
            gradient.mul_(ctx.slope[:, None])
        gradient[torch.arange(len(ctx.labels)), ctx.labels] -= 1 - ctx.smoothing
        if ctx.smoothing:
            gradient.sub_(ctx.smoothing / gradient.shape[-1])
        return gradient.mul_(upstream[0]), None, None, None
