"""Scaled dot-product attention: a fused kernel, or plain products where those are faster on a CPU."""

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.attention import Sight, attend, attends_by_kernel
from bakeoff.ops.cpu.bfloat16 import has_matrix_units
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.ops.dropout import dropout as drop


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """dropout(softmax(Q K^T * scale + bias)) V of Vaswani et al. 2017 (arXiv:1706.03762, equation 1).

    Shapes: B batch, H heads, T queries, S keys, D width of a head.

    Args:
        query: (B, H, T, D).
        key: (B, H, S, D).
        value: (B, H, S, D).
        mask: boolean, broadcast to (B, H, T, S), True where a query may attend to a key; a query without any key gives
            NaN.
        bias: broadcast to (B, H, T, S), added to the scores.
        causal: the queries are the last T of S positions, and each sees the keys up to its own. A mask replaces
            `causal`, and has to exclude later keys itself.
        scale: factor of the products of queries and keys; 1 / sqrt(D) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, H, T, D).
    """
    length, keys = query.shape[-2], key.shape[-2]
    causal = causal and mask is None and length > 1
    if bias is None and length > FEW_QUERIES and attends_by_kernel(query, key, value):
        sight = Sight(mask, after=0) if causal else Sight(mask)
        return attend(query, key, value, sight, scale, dropout)
    if causal and (keys > length or bias is not None):
        mask, causal = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril(keys - length), False
    if not _better_unfused(query, key, dropout):
        if bias is not None:
            bias = bias.to(query.dtype)
            mask = bias if mask is None else torch.where(mask, bias, -math.inf)
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale
        )
    scores = (query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)) @ key.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    if causal:
        mask = torch.ones(length, keys, dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return drop(scores.softmax(-1), dropout, True) @ value


FEW_QUERIES = 8
"""Largest number of queries for which plain products in bfloat16 beat torch's fused kernel for the CPU, whatever the
number of keys: of one query and 1,000 keys they take a tenth of the time."""

UNFUSED_KEYS = 256
"""Largest number of keys for which plain products in bfloat16, or by oneDNN, beat torch's fused kernel for the CPU."""


@cache
def _has_matrix_units() -> bool:
    return has_matrix_units()


def _better_unfused(query: Tensor, key: Tensor, dropout: float) -> bool:
    """Whether plain products are better: on a CPU torch's fused kernel has no dropout, and is slow for short rows.

    The fused kernel multiplies a few rows at a time, which costs oneDNN more than MKL; in float32 by MKL it is faster,
    and so it is in bfloat16 on matrix units where nothing is trained: 32 rows of one query and 100 keys take a quarter
    of the time of plain products, 8 rows of 128 tokens half.
    """
    if query.device.type != "cpu":
        return False
    in_bfloat16 = query.dtype == torch.bfloat16
    if in_bfloat16 and torch.is_inference_mode_enabled() and _has_matrix_units():
        return dropout > 0.0
    short = key.shape[-2] <= UNFUSED_KEYS and (in_bfloat16 or Float32Products.by_onednn)
    # What is compiled or exported is for any number of queries, and must not ask for it.
    few = in_bfloat16 and not torch.compiler.is_compiling() and query.shape[-2] <= FEW_QUERIES
    return dropout > 0.0 or short or few
