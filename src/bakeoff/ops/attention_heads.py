"""Queries, keys and values from their common projection."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bakeoff.ops.cpu.attention_heads import Heads, HeadsByKernel
from bakeoff.ops.cpu.bfloat16 import stays_in_bfloat16
from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.head_norm import head_norm
from bakeoff.ops.projected_heads import ProjectedHeads
from bakeoff.ops.rotary import kept_waves, rotate


def split_heads(projected: Tensor, heads: int, widths: Sequence[int]) -> tuple[Tensor, ...]:
    """(B, T, H * sum(widths)) projections to one tensor (B, H, T, width) for each of the widths."""
    parts = projected.split([heads * width for width in widths], dim=-1)
    return tuple(part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)


def gains_and_waves(projected: Tensor, heads: ProjectedHeads) -> tuple[Tensor | None, tuple[Tensor, Tensor] | None]:
    """The (2, d) gains of heads of one width, and their (T, d / 2) float32 cosines and sines; None: there are none."""
    gains = None if heads.gains is None else torch.stack(heads.gains)
    if heads.base is None:
        return gains, None
    return gains, kept_waves(heads.start, projected.shape[1], heads.widths[0], heads.base, torch.float32)


def attention_heads(projected: Tensor, heads: ProjectedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, of which queries and keys may be normed head by head (`head_norm`), then turned.

    In bfloat16 on a CPU this is one pass of a kernel, or takes a third of the time of single operations, whose norms
    and turns are in float32.

    Args:
        projected: (B, T, H (2 d_k + d_v)).
        heads: the heads in it.

    Returns:
        (B, H, T, d_k), (B, H, T, d_k) and (B, H, T, d_v), all of the type of `projected`.
    """
    if stays_in_bfloat16(projected) and len(set(heads.widths)) == 1:
        gains, waves = gains_and_waves(projected, heads)
        function = HeadsByKernel if runs_kernels(projected) else Heads
        made: tuple[Tensor, Tensor, Tensor] = function.apply(  # type: ignore[no-untyped-call]
            projected, heads.number, gains, heads.epsilon, waves
        )
        return made
    query, key, value = split_heads(projected, heads.number, heads.widths)
    if heads.gains is not None:
        of_query, of_key = heads.gains
        query, key = head_norm(query, of_query, heads.epsilon), head_norm(key, of_key, heads.epsilon)
    if heads.base is not None:
        query, key = rotate(query, heads.start, heads.base), rotate(key, heads.start, heads.base)
    # Norms are more precise, and rotations of them faster.
    return query.to(value.dtype), key.to(value.dtype), value
