"""Dynamic convolution: every token predicts the kernels that are applied at its position."""

from typing import Literal

from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.short_convolution import HeadsConfig, ShortConvolution, normalised
from bakeoff.ops.dropout import dropout


class DynamicConvConfig(HeadsConfig):
    """DynamicConv of Wu et al. 2019 (arXiv:1901.10430, section 3.2)."""

    kind: Literal["dynamic_conv"] = "dynamic_conv"
    """The mixer's name."""

    @override
    def build(self, context: BuildContext) -> "DynamicConv":
        self.require_heads_that_divide(context.width)
        return DynamicConv(self, context)


class DynamicConv(ShortConvolution):
    """Convolution with kernels softmax(W_h x[t]), from the current token alone, after the gate.

    Another `normaliser` stands in the place of the softmax.
    """

    def __init__(self, config: DynamicConvConfig, context: BuildContext) -> None:
        super().__init__(config, context)
        self.heads = config.heads
        self.normaliser = config.normaliser
        self.weight_dropout = config.weight_dropout
        self.prediction = nn.Linear(context.width, config.heads * self.kernel, bias=False)

    def weight(self, x: Tensor, read: int | None = None) -> Tensor:
        """(B, T, H, K) a kernel for each token and head, normalised over its taps."""
        taps = self.prediction(x).unflatten(-1, (self.heads, self.kernel))
        taps = taps if read is None else taps[..., :read]
        return dropout(normalised(taps, self.normaliser), self.weight_dropout, self.training)

    def convolution_flops(self) -> int:
        """Floating-point operations of the convolution at one position, the prediction of its kernels included."""
        return super().convolution_flops() + 2 * self.prediction.in_features * self.prediction.out_features
