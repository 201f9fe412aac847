"""Attention within a window, in blocks of queries that see the keys around them; its cost is linear in the length.

Shapes: B batch, H heads, T queries, S keys, D width of a head, W window, N blocks, Q queries and K keys of a block.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.attention import attention

LEAST_BLOCK = 32
"""Smallest number of queries of a block; fewer leave too little to do at once."""
WORTH = 4
"""Smallest ratio of all keys to those that one block sees at which blocks are worth their copies."""


def windowed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`attention` in which a query sees the keys at most W positions from its own, on both sides or before it.

    Beltagy et al. 2020 (arXiv:2004.05150, section 3.1). Every query sees at least the key at its own position, whatever
    the mask says, so that no query is without a key.

    Args:
        query: (B, H, T, D), the last T of S positions.
        key: (B, H, S, D).
        value: (B, H, S, D').
        window: W.
        mask: boolean, (B or 1, 1, T or 1, S), True where a query may attend to a key.
        bias: (1, H, T, S), added to the scores.
        causal: no query sees a later key. A mask replaces `causal`, and has to exclude later keys itself.
        scale: factor of the products; 1 / sqrt(D) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, H, T, D').
    """
    length, keys = query.shape[-2], key.shape[-2]
    after = 0 if causal and mask is None else window
    block = max(window, LEAST_BLOCK)
    # A graph that is exported is one for all lengths.
    if torch.compiler.is_exporting() or keys < WORTH * (window + block + after) or length <= block:
        allowed = _band(length, keys, keys - length, window, after, query.device)
        if mask is not None:
            allowed = (allowed & mask) | _band(length, keys, keys - length, 0, 0, query.device)
        return attention(query, key, value, mask=allowed, bias=bias, scale=scale, dropout=dropout)
    blocks = -(-length // block)
    seen = window + block + after  # K
    first = keys - length
    ends = window, blocks * block - length + after

    def of_blocks(x: Tensor) -> Tensor:
        """(B, H, S, D) to (B N, H, K, D), the keys or values of each block."""
        return F.pad(x, (0, 0, *ends))[:, :, first:].unfold(2, seen, block).permute(0, 2, 1, 4, 3).flatten(0, 1)

    def table_of_blocks(x: Tensor) -> Tensor:
        """(B or 1, H or 1, T or 1, S) to (B or 1, N, H or 1, Q or 1, K), zeros or False where there is no key."""
        x = F.pad(x, ends)[..., first:]
        if x.shape[2] == 1:
            return x.unfold(3, seen, block).transpose(2, 3).transpose(1, 2)
        x = F.pad(x, (0, 0, 0, blocks * block - length)).unflatten(2, (blocks, block)).transpose(1, 2)
        columns = torch.arange(blocks, device=x.device)[:, None] * block + torch.arange(seen, device=x.device)
        return x.gather(-1, columns[:, None, None].expand(*x.shape[:-1], seen))

    itself = _band(block, seen, window, 0, 0, query.device)  # (Q, K)
    there = torch.ones(1, 1, 1, keys, dtype=torch.bool, device=query.device) if mask is None else mask
    allowed = (table_of_blocks(there) & _band(block, seen, window, window, after, query.device)) | itself
    if bias is not None:
        bias = table_of_blocks(bias).expand(len(query), -1, -1, -1, -1).flatten(0, 1)
    queries = F.pad(query, (0, 0, 0, blocks * block - length)).unflatten(2, (blocks, block))
    mixed = attention(
        queries.transpose(1, 2).flatten(0, 1),
        of_blocks(key),
        of_blocks(value),
        mask=allowed.expand(len(query), -1, -1, -1, -1).flatten(0, 1),
        bias=bias,
        scale=scale,
        dropout=dropout,
    )
    joined: Tensor = mixed.unflatten(0, (-1, blocks)).transpose(1, 2).flatten(2, 3)
    return joined[:, :, :length]


def _band(length: int, keys: int, first: int, before: int, after: int, device: torch.device) -> Tensor:
    """(T, S) True from `before` keys before a query's own to `after` after it; the first query's own is `first`."""
    distances = torch.arange(keys, device=device) - torch.arange(first, first + length, device=device)[:, None]
    return (distances >= -before) & (distances <= after)


def seen_pairs(length: int, window: int | None, causal: bool) -> int:
    """The number of pairs, in a row of that length, of a query and a key that the query sees."""
    reach = length - 1 if window is None else min(window, length - 1)
    before = (reach + 1) * length - reach * (reach + 1) // 2
    return before if causal else 2 * before - length
