"""Cross-entropy over a large vocabulary."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """sum_n (log sum_v exp s[n, v] - s[n, y_n]), in nats.

    On a CPU torch goes through log-softmax, which takes nearly twice as long as this and holds one more (N, V) tensor.
    Here the probabilities are computed once, and the gradient is made of them in their place; so it can be taken only
    once.

    Args:
        scores: (N, V) unnormalised log-probabilities.
        labels: (N,) the right columns.
    """
    if scores.device.type != "cpu":
        return F.cross_entropy(scores, labels, reduction="sum")
    loss: Tensor = _CrossEntropy.apply(scores, labels)
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor) -> Tensor:
        probabilities = scores.softmax(-1)
        # The largest probability is 1 / sum exp(s - max s): the sum comes without another exponential.
        normaliser = scores.amax(-1) - probabilities.amax(-1).log()
        ctx.probabilities, ctx.labels = probabilities, labels
        return (normaliser - scores.gather(-1, labels[:, None])[:, 0]).sum()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        gradient, ctx.probabilities = ctx.probabilities, None
        assert gradient is not None, "the gradient was taken already, and its memory used"
        gradient[torch.arange(len(ctx.labels)), ctx.labels] -= 1
        return gradient.mul_(upstream[0]), None
