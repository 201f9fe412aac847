"""Attention of a text to itself, from the projection of queries, keys and values to the outputs of its heads."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bakeoff.ops.cpu.attention import EVERYWHERE, SelfAttention, Sight, Treatment, attends_by_kernel
from bakeoff.ops.rotary import kept_waves


def self_attention_at_once(
    projected: Tensor,
    heads: int,
    widths: Sequence[int],
    gains: tuple[Tensor, Tensor] | None = None,
    epsilon: float = 0.0,
    start: int = 0,
    base: float | None = None,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor | None:
    """`attention_heads`, and `attention` or `windowed_attention` of them, by one kernel, in bfloat16 on a CPU.

    Neither queries and keys as they are multiplied nor scores or weights are in memory.

    Args:
        projected: (B, T, H (2 d_k + d_v)).
        heads: H.
        widths: d_k, d_k and d_v.
        gains: (d_k,) of the norms of queries and keys; None: there are none.
        epsilon: of the norms.
        start: position of the first token.
        base: of the rotary positions, see `rotate`; None: there are none.
        mask: boolean, broadcast to (B, H, T, T), True where a query may attend to a key.
        causal: each query sees the keys up to its own. A mask replaces it, and has to exclude later keys itself.
        window: a query sees keys at most so many positions away, and its own whatever the mask says; None: all.
        scale: factor of the products of queries and keys; 1 / sqrt(d_k) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, T, H d_v); None where there is no kernel for it.
    """
    width = widths[0]
    like = projected[..., :width][:, None]
    if len(set(widths)) > 1 or not attends_by_kernel(like, like, like):
        return None
    waves = None if base is None else kept_waves(start, projected.shape[1], width, base, torch.float32)
    farthest = EVERYWHERE if window is None else window
    sight = Sight(mask, farthest, 0 if causal and mask is None else farthest, own=window is not None)
    both = None if gains is None else torch.stack(gains)
    factor = width**-0.5 if scale is None else scale
    mixed: Tensor = SelfAttention.apply(  # type: ignore[no-untyped-call]
        projected, heads, both, Treatment(epsilon, waves), sight, factor, dropout
    )
    return mixed
