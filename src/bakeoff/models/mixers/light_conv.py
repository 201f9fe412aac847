"""Lightweight convolution: few kernels, normalised over their taps, each shared by a run of channels."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.short_convolution import HeadsConfig, ShortConvolution, normalised
from bakeoff.ops.dropout import dropout


class LightConvConfig(HeadsConfig):
    """LightConv of Wu et al. 2019 (arXiv:1901.10430, section 3.1)."""

    kind: Literal["light_conv"] = "light_conv"
    """The mixer's name."""

    @override
    def build(self, context: BuildContext) -> "LightConv":
        self.require_heads_that_divide(context.width)
        return LightConv(self, context)


class LightConv(ShortConvolution):
    """Convolution with kernels softmax(W_h) that are parameters; another `normaliser` may replace the softmax."""

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: LightConvConfig, context: BuildContext) -> None:
        super().__init__(config, context)
        self.normaliser = config.normaliser
        self.weight_dropout = config.weight_dropout
        self.taps = nn.Parameter(torch.empty(config.heads, self.kernel))  # (H, K) not normalised yet
        nn.init.xavier_uniform_(self.taps[:, None])  # as H kernels of one channel each, which the authors' code has

    def weight(self, x: Tensor, read: int | None = None) -> Tensor:
        """(H, K) a kernel for each head, normalised over its taps."""
        taps = self.taps if read is None else self.taps[:, :read]
        return dropout(normalised(taps, self.normaliser), self.weight_dropout, self.training)
