"""Attention of a text to itself, from the projection of queries, keys and values to the outputs of its heads."""

from torch import Tensor

from bakeoff.ops.attention_heads import gains_and_waves
from bakeoff.ops.cpu.attention import EVERYWHERE, SelfAttention, Sight, Treatment, attends_by_kernel
from bakeoff.ops.projected_heads import ProjectedHeads


def self_attention_at_once(
    projected: Tensor,
    heads: ProjectedHeads,
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
        heads: the heads in it.
        mask: boolean, broadcast to (B, H, T, T), True where a query may attend to a key.
        causal: each query sees the keys up to its own. A mask replaces it, and has to exclude later keys itself.
        window: a query sees keys at most so many positions away, and its own whatever the mask says; None: all.
        scale: factor of the products of queries and keys; 1 / sqrt(d_k) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, T, H d_v); None where there is no kernel for it.
    """
    width = heads.widths[0]
    like = projected[..., :width][:, None]
    if len(set(heads.widths)) > 1 or not attends_by_kernel(like, like, like):
        return None
    gains, waves = gains_and_waves(projected, heads)
    farthest = EVERYWHERE if window is None else window
    sight = Sight(mask, farthest, 0 if causal and mask is None else farthest, own=window is not None)
    factor = width**-0.5 if scale is None else scale
    mixed: Tensor = SelfAttention.apply(  # type: ignore[no-untyped-call]
        projected, heads.number, gains, Treatment(heads.epsilon, waves), sight, factor, dropout
    )
    return mixed
