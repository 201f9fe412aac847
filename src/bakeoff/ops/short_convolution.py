"""Short convolution, for kernels that are fixed (light, depthwise) or differ by token (dynamic).

Shapes: B batch, T length, D width, H heads, R = D / H, K kernel size.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS_BYTES = 1 << 19
"""How much of the input the loop over the taps works on at once on a CPU, so that it stays in the cache."""


def tap_offsets(kernel: int, causal: bool, dilation: int = 1) -> list[int]:
    """Where each tap looks, relative to the output position; a centred kernel of even size looks one further left."""
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
    to the same result. Within compiled code it is one sum over windows, which becomes a loop over the taps around
    vectors of channels: it reads x once, and takes a second to compile whatever the kernel size. Without the compiler,
    which is never started from here, it is torch's depthwise convolution for fixed kernels, and a loop over the taps of
    a few rows at a time, which stay in the cache, for all else.

    Args:
        x: (B, T, D).
        weight: (H, K), or (B, T, H, K) where every token has a kernel of its own.
        causal: taps look at the present and the past only, else centred.
        dilation: distance between taps.
        documents: (B, T) document of each token; a tap that falls into another document counts as zero.
        left: (B, (K - 1) * dilation, D) what stands before x, for causal kernels; zeros where absent.

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
    weight, taps = weight.to(x.dtype), _Taps(before, after, dilation)
    if weight.dim() == 2 and same is None and not torch.compiler.is_compiling():
        return _depthwise(x, weight, taps)
    result: Tensor = _ShortConvolution.apply(x, weight, same, taps)
    return result


class _Taps(NamedTuple):
    """Which places the taps of an output take: those of the input with so many zeros before and after it."""

    before: int
    after: int
    dilation: int

    def pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, self.before, self.after))

    def reversed(self, kernel: int) -> "_Taps":
        """From the outputs back to the inputs."""
        reach = (kernel - 1) * self.dilation
        return _Taps(reach - self.before, reach - self.after, self.dilation)


class _ShortConvolution(torch.autograd.Function):
    """(B, N, D) to (B, T, D), T = N + before + after - (K - 1) * dilation; `same` (B, T, K) is multiplied in."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, same: Tensor | None, taps: _Taps) -> Tensor:
        ctx.save_for_backward(x, weight, same)
        ctx.taps = taps
        if torch.compiler.is_compiling():
            return _sum_over_windows(x, weight if same is None else weight * same[:, :, None], taps)
        return _sum_by_tap(x, weight, same, taps)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, weight, same = ctx.saved_tensors
        gradients = _gradients_over_windows if torch.compiler.is_compiling() else _gradients_by_tap
        of_x, of_weight = gradients(x, weight, same, ctx.taps, upstream[0])
        return of_x, of_weight, None, None


def _windows(padded: Tensor, kernel: int, dilation: int) -> Tensor:
    """(B, P, ...) to (B, T, ..., K), a view: what the taps of each position take."""
    padded = padded.contiguous()
    shape = (len(padded), padded.shape[1] - (kernel - 1) * dilation, *padded.shape[2:], kernel)
    return padded.as_strided(shape, (*padded.stride(), padded.stride(1) * dilation))


def _sum_over_windows(x: Tensor, weight: Tensor, taps: _Taps) -> Tensor:
    heads, kernel = weight.shape[-2:]
    windows = _windows(taps.pad(x).unflatten(-1, (heads, -1)), kernel, taps.dilation)  # (B, T, H, R, K)
    return (windows * weight[..., None, :]).sum(-1).flatten(-2)


def _gradients_over_windows(
    x: Tensor, weight: Tensor, same: Tensor | None, taps: _Taps, upstream: Tensor
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


def _depthwise(x: Tensor, weight: Tensor, taps: _Taps) -> Tensor:
    """Fixed kernels: (B, T, D) already lies in memory as a channels-last image of height 1."""
    width = x.shape[-1]
    kernels = weight.repeat_interleave(width // len(weight), dim=0)[:, None, None]  # (D, 1, 1, K)
    even = taps.before == taps.after  # then torch pads without a copy
    image = (x if even else taps.pad(x)).transpose(1, 2)[:, :, None]  # (B, D, 1, P)
    padding = (0, taps.before if even else 0)
    mixed = F.conv2d(image, kernels, padding=padding, dilation=(1, taps.dilation), groups=width)
    return mixed[:, :, 0].transpose(1, 2)


def _sum_by_tap(x: Tensor, weight: Tensor, same: Tensor | None, taps: _Taps) -> Tensor:
    heads, kernel = weight.shape[-2:]
    padded = taps.pad(x)
    y = x.new_zeros(len(x), padded.shape[1] - (kernel - 1) * taps.dilation, x.shape[-1])
    for tap, rows, taken in _taps_of_rows(y, kernel, taps.dilation):
        term = padded[rows, taken].unflatten(-1, (heads, -1))  # (B, T, H, R)
        y[rows].view_as(term).addcmul_(_weights_of_tap(weight, same, rows, tap), term)
    return y


def _gradients_by_tap(
    x: Tensor, weight: Tensor, same: Tensor | None, taps: _Taps, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    heads, kernel = weight.shape[-2:]
    fixed = weight.dim() == 2
    padded = taps.pad(x)
    scattered = torch.zeros_like(padded)
    of_weight = torch.zeros_like(weight)
    for tap, rows, taken in _taps_of_rows(upstream, kernel, taps.dilation):
        above = upstream[rows]
        by_head = above.unflatten(-1, (heads, -1))
        scattered[rows, taken].view_as(by_head).addcmul_(_weights_of_tap(weight, same, rows, tap), by_head)
        product = padded[rows, taken] * above
        if same is not None:
            product *= same[rows, :, tap, None]
        if fixed:
            of_weight[:, tap] += product.sum((0, 1)).unflatten(0, (heads, -1)).sum(-1)
        else:
            of_weight[rows, ..., tap] = product.unflatten(-1, (heads, -1)).sum(-1)
    return scattered[:, taps.before : taps.before + x.shape[1]], of_weight


def _taps_of_rows(y: Tensor, kernel: int, dilation: int) -> Iterator[tuple[int, slice, slice]]:
    """Each tap, the rows to work on, and the places that it takes; on a CPU a few rows at once."""
    size = max(1, ROWS_BYTES // (y[0].numel() * y.element_size())) if y.device.type == "cpu" else len(y)
    for row in range(0, len(y), size):
        for tap in range(kernel):
            yield tap, slice(row, row + size), slice(tap * dilation, tap * dilation + y.shape[1])


def _weights_of_tap(weight: Tensor, same: Tensor | None, rows: slice, tap: int) -> Tensor:
    """(H, 1), or (B, T, H, 1) where the weights differ by token or taps fall into other documents."""
    of_tap = weight[..., tap, None] if weight.dim() == 2 else weight[rows, ..., tap, None]
    return of_tap if same is None else of_tap * same[rows, :, tap, None, None]


def short_convolution_naive(
    x: Tensor, weight: Tensor, *, causal: bool, dilation: int = 1, documents: Tensor | None = None
) -> Tensor:
    """The same function written as its definition: loops over batch, position, channel and tap."""
    batch, length, width = x.shape
    heads, kernel = weight.shape[-2:]
    rows = []
    for b in range(batch):
        for t in range(length):
            for channel in range(width):
                head = channel // (width // heads)
                value = x.new_zeros(())
                for tap, offset in enumerate(tap_offsets(kernel, causal, dilation)):
                    source = t + offset
                    inside = 0 <= source < length
                    if inside and (documents is None or documents[b, source] == documents[b, t]):
                        tap_weight = weight[head, tap] if weight.dim() == 2 else weight[b, t, head, tap]
                        value = value + tap_weight * x[b, source, channel]
                rows.append(value)
    return torch.stack(rows).view(batch, length, width)
