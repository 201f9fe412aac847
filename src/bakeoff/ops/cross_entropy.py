"""Cross-entropy over a large vocabulary."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy(scores: Tensor, labels: Tensor, smoothing: float = 0.0, z_loss: float = 0.0) -> Tensor:
    """sum_n (Z_n + z Z_n^2 - (1 - e) s[n, y_n] - e mean_v s[n, v]) with Z_n = log sum_v exp s[n, v], in nats.

    On a CPU torch goes through log-softmax, which takes nearly twice as long as this and holds one more (N, V) tensor.
    Here the probabilities are computed once, and the gradient overwrites them, so that it can be taken only once.

    Args:
        scores: (N, V) unnormalised log-probabilities.
        labels: (N,) the columns of the true labels.
        smoothing: e, the share of the labels' probability that is spread evenly over all columns.
        z_loss: z, the weight of the squared normaliser; 0: there is none.
    """
    if scores.device.type != "cpu":
        plain = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
        return plain + z_loss * scores.logsumexp(-1).square().sum() if z_loss else plain
    loss: Tensor = _CrossEntropy.apply(scores, labels, smoothing, z_loss)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, smoothing: float, z_loss: float) -> Tensor:
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
        gradient, ctx.probabilities = ctx.probabilities, None
        assert gradient is not None, "the gradient was taken already, and its memory used"
        if ctx.slope is not None:
            gradient.mul_(ctx.slope[:, None])
        gradient[torch.arange(len(ctx.labels)), ctx.labels] -= 1 - ctx.smoothing
        if ctx.smoothing:
            gradient.sub_(ctx.smoothing / gradient.shape[-1])
        return gradient.mul_(upstream[0]), None, None, None
