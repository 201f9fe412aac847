"""Short convolution, for kernels that are fixed (light, depthwise) or differ by token (dynamic).

Shapes: B batch, T length, D width, H heads, R = D / H, K kernel size.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.cpu.short_convolution import (
    by_kernel,
    depthwise,
    depthwise_gradients,
    gradients_by_kernel,
    gradients_by_tap,
    sum_by_tap,
)
from bakeoff.ops.taps import Taps


def tap_offsets(kernel: int, causal: bool, dilation: int = 1) -> list[int]:
    """Distance of each tap from the output; a centred kernel of even size reaches one token further to the left."""
    reach = kernel - 1 if causal else kernel // 2
    return [(tap - reach) * dilation for tap in range(kernel)]


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

    The lightweight convolution of Wu et al. 2019 (arXiv:1901.10430, equation 4) after its softmax. There are two ways
    to the same result. Compiled code has one sum over windows, which becomes a loop over the taps around vectors of
    channels: it reads x once, and takes a second to compile whatever the kernel size. Uncompiled code has torch's
    depthwise convolution for fixed kernels, and a loop over the taps for other kernels, both on pieces that fit into
    the cache; in bfloat16 on a CPU fixed kernels have a pass of our own. The compiler is never started from here.

    Args:
        x: (B, T, D).
        weight: (H, K), or (B, T, H, K) where every token has a kernel of its own.
        causal: taps read the present and the past only; false: they are centred.
        dilation: distance between taps.
        documents: (B, T) document ids; a tap that falls into another document counts as zero.
        left: (B, (K - 1) * dilation, D) the inputs before x, for causal kernels; zeros where absent.

    Returns:
        (B, T, D).
    """
    kernel = weight.shape[-1]
    offsets = tap_offsets(kernel, causal, dilation)
    before, after = -offsets[0], offsets[-1]
    same = None
    if documents is not None:
        neighbours = _windows(F.pad(documents, (before, after), value=-1), kernel, dilation)
        same = (neighbours == documents[..., None]).to(x.dtype)  # (B, T, K)
    if left is not None:
        x, before = torch.cat([left, x], dim=1), 0
    if torch.compiler.is_exporting():  # into the operators of another library, which has no windows that overlap
        return _sum_of_moved(x, weight.to(x.dtype), same, Taps(before, after, dilation))
    result: Tensor = _ShortConvolution.apply(x, weight.to(x.dtype), same, Taps(before, after, dilation))  # type: ignore[no-untyped-call]
    return result


class _ShortConvolution(torch.autograd.Function):
    """(B, N, D) to (B, T, D), T = N + before + after - (K - 1) * dilation; `same`, (B, T, K), scales the taps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps) -> Tensor:
        ctx.save_for_backward(x, weight, same)
        ctx.taps = taps
        if torch.compiler.is_compiling():
            return _sum_over_windows(x, weight if same is None else weight * same[:, :, None], taps)
        if weight.dim() == 2 and runs_kernels(x):
            return by_kernel(x, weight, same, taps)
        if weight.dim() == 2 and same is None:
            return depthwise(x, weight, taps)
        return sum_by_tap(x, weight, same, taps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, weight, same = ctx.saved_tensors
        if torch.compiler.is_compiling():
            of_x, of_weight = _gradients_over_windows(x, weight, same, ctx.taps, upstream[0])
        elif weight.dim() == 2 and runs_kernels(x) and upstream[0].dtype == x.dtype:
            of_x, of_weight = gradients_by_kernel(x, weight, same, ctx.taps, upstream[0])
        elif weight.dim() == 2 and same is None:
            of_x, of_weight = depthwise_gradients(x, weight, ctx.taps, upstream[0])
        else:
            of_x, of_weight = gradients_by_tap(x, weight, same, ctx.taps, upstream[0])
        return of_x, of_weight, None, None


def _windows(padded: Tensor, kernel: int, dilation: int) -> Tensor:
    """(B, P, ...) to a view (B, T, ..., K) with the inputs of each position's taps."""
    padded = padded.contiguous()
    shape = (len(padded), padded.shape[1] - (kernel - 1) * dilation, *padded.shape[2:], kernel)
    return padded.as_strided(shape, (*padded.stride(), padded.stride(1) * dilation))


def _sum_over_windows(x: Tensor, weight: Tensor, taps: Taps) -> Tensor:
    heads, kernel = weight.shape[-2:]
    windows = _windows(taps.pad(x).unflatten(-1, (heads, -1)), kernel, taps.dilation)  # (B, T, H, R, K)
    return (windows * weight[..., None, :]).sum(-1).flatten(-2)


def _sum_of_moved(x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps) -> Tensor:
    """A depthwise convolution for fixed kernels, and for other kernels the sum of the shifted inputs over the taps."""
    padded, kernel = taps.pad(x), weight.shape[-1]
    if weight.dim() == 2 and same is None:
        kernels = weight.repeat_interleave(x.shape[-1] // len(weight), dim=0)[:, None]  # (D, 1, K)
        mixed = F.conv1d(padded.transpose(1, 2), kernels, dilation=taps.dilation, groups=len(kernels))
        return mixed.transpose(1, 2)
    length, y = padded.shape[1] - taps.halo(kernel), torch.zeros((), dtype=x.dtype, device=x.device)
    for tap in range(kernel):
        moved = padded[:, tap * taps.dilation : tap * taps.dilation + length]
        of_tap = weight[..., tap] if same is None else weight[..., tap] * same[:, :, tap, None]
        y = y + moved.unflatten(-1, (weight.shape[-2], -1)) * of_tap[..., None]
    return y.flatten(-2)


def _gradients_over_windows(
    x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    heads, kernel = weight.shape[-2:]
    masked = weight if same is None else weight * same[:, :, None]
    back = taps.reversed(kernel)
    if masked.dim() == 2:
        flipped = masked.flip(-1)
    else:
        # flipped[t, h, j] = padded[t + j * dilation, h, K - 1 - j]: in memory these lie at equal distances.
        padded = F.pad(masked, (0, 0, 0, 0, back.before, back.after)).contiguous()
        stride = taps.dilation * heads * kernel - 1
        flipped = padded.as_strided((*x.shape[:2], heads, kernel), (*padded.stride()[:3], stride), kernel - 1)
    windows = _windows(taps.pad(x).unflatten(-1, (heads, -1)), kernel, taps.dilation)  # (B, T, H, R, K)
    # Over the channels of a head first: what remains of it is small.
    of_weight = (windows * upstream.unflatten(-1, (heads, -1))[..., None]).sum(-2)  # (B, T, H, K)
    if same is not None:
        of_weight = of_weight * same[:, :, None]
    return _sum_over_windows(upstream, flipped, back), of_weight if weight.dim() > 2 else of_weight.sum((0, 1))
