"""Queries, keys and values from their common projection."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bakeoff.ops.cpu.attention_heads import Heads, HeadsByKernel
from bakeoff.ops.cpu.bfloat16 import stays_in_bfloat16
from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.head_norm import head_norm
from bakeoff.ops.rotary import kept_waves, rotate


def split_heads(projected: Tensor, heads: int, widths: Sequence[int]) -> tuple[Tensor, ...]:
    """(B, T, H * sum(widths)) projections to one tensor (B, H, T, width) for each of the widths."""
    parts = projected.split([heads * width for width in widths], dim=-1)
    return tuple(part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)


def attention_heads(
    projected: Tensor,
    heads: int,
    widths: Sequence[int],
    gains: tuple[Tensor, Tensor] | None = None,
    epsilon: float = 0.0,
    start: int = 0,
    base: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, of which queries and keys may be normed head by head (`head_norm`), then turned.

    In bfloat16 on a CPU this is one pass of a kernel, or takes a third of the time of single operations, whose norms
    and turns are in float32.

    Args:
        projected: (B, T, H (2 d_k + d_v)).
        heads: H.
        widths: d_k, d_k and d_v.
        gains: (d_k,) of the norms of queries and keys; None: there are none.
        epsilon: of the norms.
        start: position of the first token.
        base: of the rotary positions, see `rotate`; None: there are none.

    Returns:
        (B, H, T, d_k), (B, H, T, d_k) and (B, H, T, d_v), all of the type of `projected`.
    """
    if stays_in_bfloat16(projected) and len(set(widths)) == 1:
        waves = None if base is None else kept_waves(start, projected.shape[1], widths[0], base, torch.float32)
        both = None if gains is None else torch.stack(gains)
        function = HeadsByKernel if runs_kernels(projected) else Heads
        made: tuple[Tensor, Tensor, Tensor] = function.apply(  # type: ignore[no-untyped-call]
            projected, heads, both, epsilon, waves
        )
        return made
    query, key, value = split_heads(projected, heads, widths)
    if gains is not None:
        query, key = head_norm(query, gains[0], epsilon), head_norm(key, gains[1], epsilon)
    if base is not None:
        query, key = rotate(query, start, base), rotate(key, start, base)
    # Norms are more precise, and rotations of them faster.
    return query.to(value.dtype), key.to(value.dtype), value
