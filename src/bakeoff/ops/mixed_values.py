"""Values of attention mixed with those of an earlier layer, where they lie in their projection.

Shapes: B batch, T length, C channels of a projection, H heads, d_v width of a head's values. Gradients are written by
hand: those of slices would be filled with zeros and added up, at three times the cost.
"""

from typing import Any, cast

import torch
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.cpu.mixed_values import GivenValues, MixedValues


def given_values(projected: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """The projection, and (B, T, H d_v) its values for other layers; (B, T, C) and H d_v are given."""
    if not torch.is_grad_enabled() or _followed():
        return projected, projected[..., -channels:]
    function = GivenValues if runs_kernels(projected) else _GivenValues
    return cast(tuple[Tensor, Tensor], function.apply(projected, channels))  # type: ignore[no-untyped-call]


def mixed_values(projected: Tensor, first: Tensor, share: Tensor) -> Tensor:
    """The projection with v + a (v_1 - v) in the place of the values v, its last channels.

    The projection is written over, unless this is compiled or exported; its producer must not need it again.

    Args:
        projected: (B, T, C) queries, keys and values.
        first: (B, T, H d_v) v_1, of the same type.
        share: (1,) a.
    """
    if _followed():
        others, values = projected.tensor_split([projected.shape[-1] - first.shape[-1]], dim=-1)
        return torch.cat([others, torch.lerp(values, first, share.to(values.dtype))], dim=-1)
    by_kernel = torch.is_grad_enabled() and runs_kernels(projected) and projected.is_contiguous()
    function = MixedValues if by_kernel and share.dtype == torch.float32 else _MixedValues
    return cast(Tensor, function.apply(projected, first, share))  # type: ignore[no-untyped-call]


def _followed() -> bool:
    """Whether operations are compiled, traced or transformed, and their gradients made by what does it."""
    compiling = torch.compiler.is_compiling() or torch.compiler.is_exporting()
    return compiling or torch._C._is_tracing() or torch._C._functorch.maybe_current_level() is not None


class _GivenValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, channels: int) -> tuple[Tensor, Tensor]:
        ctx.channels = channels
        return projected.view_as(projected), projected[..., -channels:].contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        of_projected = gradients[0].clone(memory_format=torch.contiguous_format)
        of_projected[..., -ctx.channels :] += gradients[1]
        return of_projected, None


class _MixedValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, projected: Tensor, first: Tensor, share: Tensor) -> Tensor:
        values = projected[..., -first.shape[-1] :]
        difference = first - values
        values.addcmul_(difference, share.to(values.dtype))
        ctx.save_for_backward(difference, share)
        return projected.view_as(projected)  # `mark_dirty` is refused for products that are views, as oneDNN's are

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        difference, share = ctx.saved_tensors
        of_projected = gradients[0].clone(memory_format=torch.contiguous_format)
        of_values = of_projected[..., -difference.shape[-1] :]
        of_first = of_values * share.to(of_values.dtype)
        of_share = (of_values * difference).sum(dtype=share.dtype)
        of_values -= of_first
        return of_projected, of_first, of_share.view_as(share)
