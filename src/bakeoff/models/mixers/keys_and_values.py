"""What attention does with its keys, values and queries apart from multiplying them: remembering, and choosing."""

import torch
from torch import Tensor

from bakeoff.models.context import Context


def continued(earlier: Tensor, new: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    """The earlier keys or values, followed by those of the next tokens.

    Shapes: S tokens so far, T new ones, R positions of the memory, d width of a head.

    Args:
        earlier: (B, H, S, d), or the memory (B, H, R, d) where it is written in place, of which the first S count.
        new: (B, H, T, d).
        context: gives S, and the room, with which is written in place.

    Returns:
        (B, H, S + T, d), and the state to remember: the same tensor, or the memory, twice as large where it was full.
    """
    if not context.room:
        whole = torch.cat([earlier.to(new.dtype), new], dim=2)  # before the first token it is of the weights' type
        return whole, whole
    end = context.start + new.shape[2]
    if end > earlier.shape[2]:
        memory = new.new_empty(*new.shape[:2], context.room if end <= context.room else 2 * end, new.shape[3])
        memory[:, :, : context.start] = earlier[:, :, : context.start]
        earlier = memory
    earlier[:, :, context.start : end] = new
    return earlier[:, :, :end], earlier


def chosen_queries(
    query: Tensor, key: Tensor, mask: Tensor | None, bias: Tensor | None, causal: bool, wanted: Tensor
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The queries at some positions, and their masks and biases.

    Shapes: B batch, H heads, T length, M wanted positions of each row.

    Args:
        query: (B, H, T, d).
        key: (B, H, T, d).
        mask: (B or 1, 1, T or 1, T), or None.
        bias: (1, H, T, T), or None.
        causal: without a mask, each query sees its own position and earlier ones.
        wanted: (B, M).

    Returns:
        (B, H, M, d), the mask (B, 1, M or 1, T) or None, the bias (B, H, M, T) or None.
    """
    index = wanted[:, None, :, None]
    rows, length = len(query), key.shape[2]
    chosen = query.gather(2, index.expand(-1, query.shape[1], -1, query.shape[-1]))
    if mask is None and causal:
        mask = index >= torch.arange(length, device=query.device)
    elif mask is not None and mask.shape[2] > 1:
        mask = mask.expand(rows, -1, -1, -1).gather(2, index.expand(-1, -1, -1, length))
    if bias is not None:
        bias = bias.expand(rows, -1, -1, -1).gather(2, index.expand(-1, bias.shape[1], -1, length))
    return chosen, mask, bias
