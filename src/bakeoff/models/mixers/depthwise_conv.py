"""Depthwise convolution: a kernel of its own for every channel, not normalised."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.short_convolution import ConvolutionConfig, ShortConvolution


class DepthwiseConvConfig(ConvolutionConfig):
    """Depthwise convolution; with `dilation` the dilated convolution of Tay et al. 2021 (arXiv:2105.03322, 3.1)."""

    kind: Literal["depthwise_conv"] = "depthwise_conv"
    """The mixer's name."""

    @override
    def build(self, context: BuildContext) -> "DepthwiseConv":
        return DepthwiseConv(self, context)


class DepthwiseConv(ShortConvolution):
    """One kernel for each channel, as a parameter."""

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: DepthwiseConvConfig, context: BuildContext) -> None:
        super().__init__(config, context)
        self.taps = nn.Parameter(torch.empty(context.width, self.kernel))  # (D, K)
        nn.init.normal_(self.taps, std=self.kernel**-0.5)

    def weight(self, x: Tensor, read: int | None = None) -> Tensor:
        """(D, K) a kernel for each channel."""
        return self.taps if read is None else self.taps[:, :read]
