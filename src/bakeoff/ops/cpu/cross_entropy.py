"""Cross-entropy over a large vocabulary, whose gradient takes the memory of the probabilities."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import run, runs_kernels
from bakeoff.ops.cpu.linear import multiplies_by_onednn
from bakeoff.ops.cpu.transposed_product import multiplies_transposed, transposed_product

HALF = 0.5
"""A probability from which on the sum of the others is the more precise."""


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
    @once_differentiable
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


class LinearCrossEntropy(torch.autograd.Function):
    """The summed cross-entropy of N rows with the scores W x + b, with products and probabilities in bfloat16.

    Neither scores nor probabilities are turned into float32, which would take more time than all the products. What
    the rounding of a probability p would spoil is taken from the others: where p > 1/2 the loss is -log(1 - q) and the
    gradient -q, with q the sum of all others, and else -log p and -q.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
        """The sum in nats, of (N, E) rows, a (V, E) weight, a (V,) bias and (N,) labels."""
        rows, weight = rows.bfloat16(), weight.bfloat16()
        bias = None if bias is None else bias.bfloat16()
        if rows.numel() and multiplies_by_onednn() and runs_kernels(rows):  # torch's would copy the bias into all rows
            scores = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
        else:
            scores = F.linear(rows, weight, bias)
        losses, gradient = _by_kernel(scores, labels) if runs_kernels(scores) else _by_torch(scores, labels)
        ctx.save_for_backward(rows, weight, gradient)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of rows, weight and bias."""
        rows, weight, gradient = ctx.saved_tensors
        of_rows, of_weight, of_bias, _ = ctx.needs_input_grad
        for_weight: Tensor | None = None
        for_bias: Tensor | None = None
        if of_weight and multiplies_transposed(gradient, rows.shape[1]):
            for_weight, for_bias = transposed_product(gradient, rows, float(upstream[0]))
        else:
            for_weight = (gradient.t() @ rows).float().mul_(upstream[0]) if of_weight else None
            for_bias = gradient.sum(0).float().mul_(upstream[0]) if of_bias else None
        for_rows = (gradient @ weight).mul_(upstream[0]) if of_rows else None
        return for_rows, for_weight, for_bias if of_bias else None, None


def _by_kernel(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The (N,) losses, and the gradients of the (N, V) scores in their place."""
    count, size = scores.shape
    if count and not 0 <= int(labels.min()) <= int(labels.max()) < size:
        raise IndexError(f"a label is not one of the {size} columns")
    losses = scores.new_empty(count, dtype=torch.float32)
    run("cross_entropy", count, size, scores, labels.long().contiguous(), losses, size)
    return losses, scores


def _by_torch(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The (N,) losses, and the (N, V) gradients of the scores."""
    gradient = scores.softmax(-1)
    # torch's gather and scatter would copy all of the scores.
    numbers, true = gradient.view(-1), torch.arange(len(labels)) * scores.shape[-1] + labels
    right = numbers.index_select(0, true).float()
    numbers.index_fill_(0, true, 0.0)
    others = gradient.sum(-1)
    numbers.index_copy_(0, true, -others)
    losses = torch.where(right > HALF, -torch.log1p(-others.float()), -right.log())
    lost = (right == 0).nonzero()[:, 0]
    if len(lost):  # too small a probability for the type
        of_lost = scores[lost].float()
        losses[lost] = of_lost.logsumexp(-1) - of_lost[torch.arange(len(lost)), labels[lost]]
    return losses, gradient
