"""Dense convolution: every tap is a whole linear map, the first rung of the ladder dense, depthwise, light, dynamic."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bakeoff.models.context import Place
from bakeoff.models.mixers.short_convolution import ConvolutionConfig, GatedConvolution
from bakeoff.ops.short_convolution import tap_offsets


class ConvConfig(ConvolutionConfig):
    """Convolution with D x D x K weights, as "CNN" in table 3 of Wu et al. 2019 (arXiv:1901.10430)."""

    kind: Literal["conv"] = "conv"
    """The mixer's name."""

    def build(self, place: Place) -> "Conv":
        """The mixer for one layer."""
        return Conv(self, place)


class Conv(GatedConvolution):
    """y[t] = sum_j W_j x[t + offset_j]."""

    def __init__(self, config: ConvConfig, place: Place) -> None:
        super().__init__(config, place)
        self.taps = nn.Parameter(torch.empty(self.kernel, place.width, place.width))  # (K, D, D)
        nn.init.normal_(self.taps, std=(self.kernel * place.width) ** -0.5)

    def convolve(self, x: Tensor, documents: Tensor | None, left: Tensor | None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return _dense_convolution(x, self.taps, tap_offsets(self.kernel, self.causal, self.dilation), documents, left)

    def convolution_flops(self) -> int:
        """Floating-point operations of the convolution at one place."""
        return 2 * self.taps.numel()


def _dense_convolution(
    x: Tensor, taps: Tensor, offsets: list[int], documents: Tensor | None, left: Tensor | None
) -> Tensor:
    """One matrix product a tap; (B, T, D) and (K, D, D) to (B, T, D)."""
    length, before, after = x.shape[1], -offsets[0], offsets[-1]
    padded = F.pad(x, (0, 0, before, after)) if left is None else torch.cat([left, x], dim=1)
    owners = None if documents is None else F.pad(documents, (before, after), value=-1)
    y = torch.zeros_like(x)
    for tap, offset in zip(taps, offsets, strict=True):
        taken = slice(before + offset, before + offset + length)
        seen = padded[:, taken]
        if owners is not None and documents is not None:
            seen = seen * (owners[:, taken] == documents)[..., None]
        y = y + F.linear(seen, tap)
    return y
