"""Dense convolution: every tap is a linear layer, the first rung of the ladder dense, depthwise, light, dynamic."""

from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.short_convolution import ConvolutionConfig, GatedShortConvolution
from bakeoff.ops.convolution import convolution


class ConvConfig(ConvolutionConfig):
    """Convolution with D x D x K weights, as "CNN" in table 3 of Wu et al. 2019 (arXiv:1901.10430)."""

    kind: Literal["conv"] = "conv"
    """The mixer's name."""

    @override
    def build(self, context: BuildContext) -> "Conv":
        return Conv(self, context)


class Conv(GatedShortConvolution):
    """y[t] = sum_j W_j x[t + offset_j]."""

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: ConvConfig, context: BuildContext) -> None:
        super().__init__(config, context)
        self.taps = nn.Parameter(torch.empty(context.width, self.kernel, context.width))  # (D, K, D)
        nn.init.normal_(self.taps, std=(self.kernel * context.width) ** -0.5)

    @override
    def convolve(self, x: Tensor, documents: Tensor | None, left: Tensor | None, behind: bool = False) -> Tensor:
        read, causal = self.taps_behind(behind), self.causal or behind
        taps = self.taps if read is None else self.taps[:, :read]
        return convolution(x, taps, causal=causal, dilation=self.dilation, documents=documents, left=left)

    def kernels(self, x: Tensor, context: Context) -> Tensor:
        """(D, K) the length of every tap's vector of weights for each output."""
        return cast(Tensor, torch.linalg.vector_norm(self.taps, dim=-1))

    @override
    def convolution_flops(self) -> int:
        return 2 * self.taps.numel()
