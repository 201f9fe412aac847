"""Short convolution as shift-and-add, for kernels that are fixed (light) or differ by token (dynamic).

Shapes: B batch, T length, D width, H heads, K kernel size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


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

    The lightweight convolution of Wu et al. 2019 (arXiv:1901.10430, equation 4) after its softmax. A loop over taps
    compiles into one pass over x, which a grouped convolution or an unfolded matrix product is not.

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
    length = x.shape[1]
    heads, kernel = weight.shape[-2:]
    offsets = tap_offsets(kernel, causal, dilation)
    before, after = max(0, -offsets[0]), max(0, offsets[-1])
    if weight.dim() == 2 and documents is None and not torch.compiler.is_compiling():
        return _as_convolution(x, weight, before, after, dilation, left)
    padded = F.pad(x, (0, 0, before, after)) if left is None else torch.cat([left, x], dim=1)
    padded = padded.unflatten(-1, (heads, -1))  # (B, before + T + after, H, D / H)
    padded_documents = None if documents is None else F.pad(documents, (before, after), value=-1)
    total = None
    for tap, offset in enumerate(offsets):
        taken = slice(before + offset, before + offset + length)
        tap_weight = weight[..., tap]  # (H) or (B, T, H)
        if padded_documents is not None and documents is not None and offset != 0:
            same = padded_documents[:, taken] == documents  # (B, T)
            tap_weight = torch.where(same[..., None], tap_weight, 0.0)  # the weight is masked, not x: it is narrower
        term = tap_weight[..., None] * padded[:, taken]
        total = term if total is None else total + term
    assert total is not None
    return total.flatten(-2)


def _as_convolution(x: Tensor, weight: Tensor, before: int, after: int, dilation: int, left: Tensor | None) -> Tensor:
    """Fixed kernels without the compiler: (B, T, D) already lies in memory as a channels-last image of height 1."""
    kernels = weight.repeat_interleave(x.shape[-1] // weight.shape[0], dim=0)[:, None, None]  # (D, 1, 1, K)
    if left is not None:
        x, before = torch.cat([left, x], dim=1), 0
    elif before != after:
        x, before = F.pad(x, (0, 0, before, after)), 0
    image = x.transpose(1, 2)[:, :, None]  # (B, D, 1, T)
    mixed = F.conv2d(image, kernels, padding=(0, before), dilation=(1, dilation), groups=x.shape[-1])
    return mixed[:, :, 0].transpose(1, 2)


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
