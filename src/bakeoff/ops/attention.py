"""Scaled dot-product attention: torch's fused kernel, or plain products where those are faster on a CPU."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.dropout import dropout as drop


def attention(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """dropout(softmax(Q K^T / sqrt(D))) V of Vaswani et al. 2017 (arXiv:1706.03762, equation 1).

    Shapes: B batch, H heads, T queries, S keys, D width of a head.

    Args:
        query: (B, H, T, D).
        key: (B, H, S, D).
        value: (B, H, S, D).
        mask: boolean, broadcast to (B, H, T, S), True where a query may attend to a key; at least one for each query.
        causal: query t attends to keys 0 to t. A mask replaces this, and has to contain it.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, H, T, D).
    """
    if not _better_unfused(query, key, dropout):
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal and mask is None
        )
    scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)
    if causal and mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return drop(scores.softmax(-1), dropout, True) @ value


UNFUSED_KEYS = 256
"""Up to this many keys plain products in bfloat16 beat torch's fused kernel for the CPU."""


def _better_unfused(query: Tensor, key: Tensor, dropout: float) -> bool:
    """On a CPU torch has no fused kernel with dropout, and one in bfloat16 that is slow for short rows."""
    if query.device.type != "cpu":
        return False
    return dropout > 0.0 or (query.dtype == torch.bfloat16 and key.shape[-2] <= UNFUSED_KEYS)
