"""Dynamic convolution: every token predicts the kernels that are applied at its place."""

from typing import Literal

from torch import Tensor, nn

from bakeoff.models.context import Place
from bakeoff.models.mixers.short_convolution import HeadsConfig, ShortConvolution
from bakeoff.ops.dropout import dropout


class DynamicConvConfig(HeadsConfig):
    """DynamicConv of Wu et al. 2019 (arXiv:1901.10430, section 3.2)."""

    kind: Literal["dynamic_conv"] = "dynamic_conv"
    """The mixer's name."""

    def build(self, place: Place) -> "DynamicConv":
        """The mixer for one layer."""
        self.require_heads_that_divide(place.width)
        return DynamicConv(self, place)


class DynamicConv(ShortConvolution):
    """Kernels softmax(W_h x[t]), from the current token alone, behind the gate."""

    def __init__(self, config: DynamicConvConfig, place: Place) -> None:
        super().__init__(config, place)
        self.heads = config.heads
        self.weight_dropout = config.weight_dropout
        self.prediction = nn.Linear(place.width, config.heads * self.kernel, bias=False)

    def weight(self, x: Tensor) -> Tensor:
        """(B, T, H, K)."""
        taps = self.prediction(x).unflatten(-1, (self.heads, self.kernel))
        return dropout(taps.softmax(-1), self.weight_dropout, self.training)

    def convolution_flops(self) -> int:
        """Floating-point operations of the convolution at one place, the prediction of its kernels included."""
        return super().convolution_flops() + 2 * self.prediction.in_features * self.prediction.out_features
