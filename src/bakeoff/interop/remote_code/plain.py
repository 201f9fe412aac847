"""Plain replacements, for exported files, of definitions that need more than torch or serve training speed alone.

Each computes the same as the definition of Bakeoff with its name; `source.IN_THEIR_PLACE` lists them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bakeoff.ops.projected_heads import ProjectedHeads


class Config:
    """Settings of a part as attributes; settings of parts inside it are configs as well."""

    def __init__(self, values: dict[str, Any] | None = None, **others: Any) -> None:
        for name, value in {**(values or {}), **others}.items():
            each = [self._read(name, item) for item in value] if isinstance(value, list) else self._read(name, value)
            setattr(self, name, each)

    @classmethod
    def model_validate(cls, values: dict[str, Any]) -> Any:
        """A config of values, which were checked when the model was made."""
        return cls(values)

    def _read(self, name: str, value: Any) -> Any:
        """The value of a setting: the config of a part, or the value as it is."""
        if not isinstance(value, dict):
            return value
        config = CONFIGS.get((type(self).__name__, name, value.get("kind")))
        return value if config is None else config(value)


CONFIGS: dict[tuple[str, str, str | None], type[Config]] = {}
"""The class of each config inside a config, by the outer config's class, the name of the setting and the kind of part;
filled at the end of an exported file."""


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout in training: zero elements independently at this rate, and scale the others by 1 / (1 - rate)."""
    return F.dropout(x, rate, training)


def channel_dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of whole channels of (B, T, D) rows, each at all positions or at none; the others are scaled."""
    return x * F.dropout(torch.ones_like(x[:, :1]), rate, training)


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

    Shapes: (B, H, T, D) queries, (B, H, S, D) keys and values, mask (True: may attend) and bias broadcast to
    (B, H, T, S). With `causal` the queries are the last T of S positions; a mask replaces it, and must include it.
    """
    length, keys = query.shape[-2], key.shape[-2]
    causal = causal and mask is None and length > 1
    if causal and (keys > length or bias is not None):
        mask, causal = torch.ones(length, keys, dtype=torch.bool, device=query.device).tril(keys - length), False
    if bias is not None:
        bias = bias.to(query.dtype)
        mask = bias if mask is None else torch.where(mask, bias, float("-inf"))
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, beside: Tensor | None = None) -> Tensor:
    """W x + b of (..., I) states, an (O, I) weight and an (O,) bias, added to (..., O) `beside` if there is such."""
    y = F.linear(x, weight, bias)
    return y if beside is None else beside + y


def adds_within_products(x: Tensor) -> bool:
    """Whether `linear` is to add what stands beside the states."""
    return False


def rotate(x: Tensor, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Turn the pair (x[i], x[i + d/2]) at position t by the angle t / base^(2 i / d) (Su et al. 2021, equation 34).

    Shapes: (B, H, T, d) to (B, H, T, d), whose first position is `start`.
    """
    length, width = x.shape[-2:]
    rates = 1.0 / base ** (torch.arange(0, width, 2, device=x.device, dtype=torch.float32) / width)
    angles = torch.arange(start, start + length, device=x.device, dtype=torch.float32)[:, None] * rates
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def head_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """The norm g x / sqrt(mean_i x_i^2 + epsilon) over the last dimension, in the gain's precision."""
    return F.rms_norm(x.to(gain.dtype), gain.shape, gain, epsilon)


def gelu(x: Tensor, by_tanh: bool = False, gate: Tensor | None = None) -> Tensor:
    """The Gaussian error linear unit, or its approximation by tanh, times a gate if there is one."""
    y = F.gelu(x, approximate="tanh" if by_tanh else "none")
    return y if gate is None else y * gate


def norm_beside(x: Tensor, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """States and their norm."""
    return x, norm(x)


def norm_alone(x: Tensor, norm: nn.Module) -> Tensor:
    """The norm of states."""
    normed: Tensor = norm(x)
    return normed


def rounded(x: Tensor) -> Tensor:
    """States of the type in which a model has them."""
    return x


def residual(x: Tensor) -> Tensor:
    """States as what goes past a function of them."""
    return x


def norm_of_sum(x: Tensor, branch: Tensor, rate: float, training: bool, norm: nn.Module) -> Tensor:
    """norm(x + dropout(branch))."""
    normed: Tensor = norm(x + F.dropout(branch, rate, training))
    return normed


def given_values(projected: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """The projection, and its values, the last channels."""
    return projected, projected[..., -channels:]


def mixed_values(projected: Tensor, first: Tensor, share: Tensor) -> Tensor:
    """The projection with (1 - a) v + a v_1 in the place of the values v, its last channels."""
    others, values = projected.tensor_split([projected.shape[-1] - first.shape[-1]], dim=-1)
    return torch.cat([others, torch.lerp(values, first, share.to(values.dtype))], dim=-1)


def short_convolution(
    x: Tensor,
    weight: Tensor,
    *,
    causal: bool,
    dilation: int = 1,
    documents: Tensor | None = None,
    left: Tensor | None = None,
) -> Tensor:
    """y[t] = sum_j weight[..., h, j] * x[t + offset_j], where head h covers a contiguous run of D / H channels.

    Shapes: (B, T, D) x; weight (H, K), or (B, T, H, K) where every token has kernels of its own. The K taps lie
    `dilation` apart, up to the present if `causal`, else around it; a tap in another one of the (B, T) documents, or
    outside of the row, reads zero. `left` is the inputs before a row.
    """
    length, (heads, kernel) = x.shape[1], weight.shape[-2:]
    before = (kernel - 1 if causal else kernel // 2) * dilation
    after = (kernel - 1) * dilation - before
    padded = F.pad(x, (0, 0, before, after)) if left is None else torch.cat([left, x], dim=1)
    weight = weight.to(x.dtype)
    if weight.dim() == 2 and documents is None:
        kernels = weight.repeat_interleave(x.shape[-1] // heads, dim=0)[:, None]  # (D, 1, K)
        return F.conv1d(padded.transpose(1, 2), kernels, dilation=dilation, groups=len(kernels)).transpose(1, 2)
    y = torch.zeros_like(x)
    for tap in range(kernel):
        of_tap = weight[..., tap]
        if documents is not None:
            moved = F.pad(documents, (before, after), value=-1)[:, tap * dilation : tap * dilation + length]
            of_tap = of_tap * (moved == documents)[..., None]
        term = padded[:, tap * dilation : tap * dilation + length].unflatten(-1, (heads, -1))
        y = y + (term * of_tap[..., None]).flatten(-2)
    return y


def attention_heads(projected: Tensor, heads: ProjectedHeads) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, T, width) queries, keys and values from (B, T, H * sum(widths)) projections.

    With gains, queries and keys are normed head by head; with a base, they are then turned.
    """
    parts = projected.split([heads.number * width for width in heads.widths], dim=-1)
    query, key, value = (part.unflatten(-1, (heads.number, -1)).transpose(1, 2) for part in parts)
    if heads.gains is not None:
        of_query, of_key = heads.gains
        query, key = head_norm(query, of_query, heads.epsilon), head_norm(key, of_key, heads.epsilon)
    if heads.base is not None:
        query, key = rotate(query, heads.start, heads.base), rotate(key, heads.start, heads.base)
    return query.to(value.dtype), key.to(value.dtype), value


def self_attention_at_once(projected: Tensor, heads: ProjectedHeads, **settings: Any) -> Tensor | None:
    """Nothing is done at once here."""
    return None
