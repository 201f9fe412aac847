"""Cross-entropy with the scores of a large vocabulary, of which only some rows exist at a time.

Shapes: N rows, E width, V vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16
from bakeoff.ops.cpu.cross_entropy import LinearCrossEntropy
from bakeoff.ops.cross_entropy import cross_entropy
from bakeoff.ops.document_attention import products_on

MOST_SCORES = 1 << 27
"""The largest number of scores at once, 512 MB in float32; products of fewer rows would take a GPU longer."""


MULTIPLE = 64
"""The number of which the width of scores is a multiple on `ALIGNED_DEVICES`.

Rows of an odd number of scores begin where a GPU cannot read several at once: the three products of 65,536 rows of 768
with the 50,257 tokens of GPT-2 took 128 ms of an H100, which at the rate of its other products are 22.
"""
ALIGNED_DEVICES = {"cuda", "meta"}
"""The kinds of devices whose products are made of a wider table; meta tensors stand for those of a GPU."""


@contextmanager
def most_scores(count: int) -> Iterator[None]:
    """A context with another largest number of scores at once, to count the memory of other numbers of rows."""
    global MOST_SCORES
    before, MOST_SCORES = MOST_SCORES, count
    try:
        yield
    finally:
        MOST_SCORES = before


def rows_at_once(vocabulary: int) -> int:
    """The number of rows whose scores are made at once."""
    return max(1, MOST_SCORES // vocabulary)


def linear_cross_entropy(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    smoothing: float = 0.0,
    z_loss: float = 0.0,
) -> Tensor:
    """`cross_entropy` of the scores W x + b, which for many rows are made in chunks.

    The gradient of a chunk is made right after its scores, once, so that neither these nor the probabilities of all
    rows ever exist at the same time; it can be taken only once. The gradient of W is added up in the precision of W.
    Rows that make a single chunk have the loss and gradients of `cross_entropy` to the last bit.

    Args:
        rows: (N, E) hidden states.
        weight: (V, E).
        bias: (V,) or None.
        labels: (N,) the columns of the true labels.
        smoothing: share of the labels' probability that is spread evenly over all columns.
        z_loss: weight of the squared normaliser.

    Returns:
        () the sum over the rows, in nats.
    """
    size = rows_at_once(len(weight))
    trained = torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in (rows, weight, bias))
    if len(rows) > size and not trained:
        parts = zip(rows.split(size), labels.split(size), strict=True)
        losses = [linear_cross_entropy(some, weight, bias, own, smoothing, z_loss) for some, own in parts]
        return torch.stack(losses).sum()
    if len(rows) <= size and autocast_to_bfloat16(rows) and not smoothing and not z_loss:
        in_bfloat16: Tensor = LinearCrossEntropy.apply(rows, weight, bias, labels)  # type: ignore[no-untyped-call]
        return in_bfloat16
    return linear_loss(
        rows, weight, bias, lambda scores, at: cross_entropy(scores, labels[at], smoothing, z_loss), size
    )


OfScores = Callable[[Tensor, slice], Tensor]
"""A function of the (n, V) scores of a chunk, in float32, and the chunk's place among the rows: its loss, summed."""


def linear_loss(rows: Tensor, weight: Tensor, bias: Tensor | None, of_scores: OfScores, size: int) -> Tensor:
    """() any loss of the scores W x + b that is a sum over rows, made in chunks of `size` rows; see the function above.

    Args:
        rows: (N, E) hidden states.
        weight: (V, E).
        bias: (V,) or None.
        of_scores: the loss of a chunk.
        size: the number of rows whose scores are made at once.
    """
    if len(rows) <= size:
        scores = F.linear(rows, *_aligned(weight, bias))[:, : len(weight)]
        return of_scores(scores.float(), slice(0, len(rows)))
    loss: Tensor = _Chunked.apply(rows, weight, bias, of_scores, size)  # type: ignore[no-untyped-call]
    return loss


def _aligned(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """W and b for products: on a GPU with further rows of zeros up to a `MULTIPLE`, in the type of the products."""
    kind, missing = weight.device.type, -len(weight) % MULTIPLE
    if kind not in ALIGNED_DEVICES or not missing:
        return weight, bias
    weight = weight.to(products_on(weight.device, weight.dtype))  # once, and not for each chunk
    return F.pad(weight, (0, 0, 0, missing)), None if bias is None else F.pad(bias, (0, missing))


class _Chunked(torch.autograd.Function):
    """The sum over chunks, with its gradients, which are made in the forward pass where they are needed."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        of_scores: OfScores,
        size: int,
    ) -> Tensor:
        """The sum in nats."""
        leaves, vocabulary = (rows, weight, bias), len(weight)
        weight, bias = _aligned(weight, bias)
        ctx.gradients = gradients = [
            torch.zeros_like(leaf) if leaf is not None and needed else None
            for leaf, needed in zip(leaves, ctx.needs_input_grad, strict=False)
        ]
        total = torch.zeros((), dtype=torch.float32, device=rows.device)
        for begin in range(0, len(rows), size):
            at = slice(begin, begin + size)
            chunk = rows[at]
            scores = F.linear(chunk, weight, bias).requires_grad_()
            with torch.enable_grad():
                loss = of_scores(scores[:, :vocabulary].float(), at)
            total += loss.detach()
            (upstream,) = torch.autograd.grad(loss, scores)
            del scores, loss  # or the next chunk's would be made beside them
            if gradients[0] is not None:
                gradients[0][at] = upstream @ weight
            if gradients[1] is not None:
                gradients[1] += (upstream.mT @ chunk)[:vocabulary]
            if gradients[2] is not None:
                gradients[2] += upstream.sum(0)[:vocabulary]
            del upstream
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of rows, weight and bias."""
        gradients, ctx.gradients = ctx.gradients, None
        assert gradients is not None, "the gradient was taken already, and its memory used"
        return *(None if each is None else each.mul_(upstream[0]) for each in gradients), None, None
