"""Temporal convolutional network: residual blocks of two dilated convolutions."""

import math
from functools import partial
from typing import ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bakeoff.models.blocks.block import BlockBaseConfig, refuse_source
from bakeoff.models.blocks.convolution import Convolution, Convolutions
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.short_convolution import of_layer
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import channel_dropout, dropout


class TcnBlockConfig(BlockBaseConfig):
    """The residual block of Bai et al. 2018 (arXiv:1803.01271, section 3); in an encoder its taps are centred."""

    scales_with_width: ClassVar = frozenset({"width"})

    kind: Literal["tcn"] = "tcn"
    """The block's name."""
    kernel: int | list[int]
    """K, the kernel size of both convolutions, or a list with one for each layer."""
    width: int | None = Field(default=None, gt=0)
    """Width of the output; the width of the input where absent."""
    dilation: int | list[int] | None = None
    """Distance between the taps, or a list with one for each layer; absent: 2^l in layer l, counted from 0."""
    dropout_of: Literal["channels", "elements"] = "channels"
    """The unit of dropout after each convolution: channels of a whole row (the paper), or elements (its code)."""
    residual: bool = True
    """The block's input, or its projection, is added to its output."""
    gate: bool = False
    """Gated linear units replace each ReLU but the last, with twice the convolutions (the paper's appendix D)."""

    def output_width(self, width: int, layer: int) -> int:
        """The block's own width, or the width of its input."""
        return self.width or width

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The one part of a layer.

        Raises:
            UserError: a list of sizes is too short for the layer, or there is an encoder to attend to.
        """
        refuse_source(self.kind, context)
        return {"mixer": TemporalConvolutions(self, context)}


class TemporalConvolutions(Convolutions):
    """y = relu(x + h_2(h_1(x))) with h(x) = dropout(relu(F x)), F_t = b + sum_i W_i x[t - d (K - 1 - i)].

    Sections 3.2 to 3.4 and figure 1; with gates h(x) = dropout(F x * sigmoid(G x)). Initial weights are as the
    published code has them in effect: torch's for the convolutions, because weight normalisation undoes the code's
    normal distribution, and the normal distribution for the 1x1 convolution; biases are torch's.
    """

    def __init__(self, config: TcnBlockConfig, context: BuildContext) -> None:
        kernel = of_layer(config.kernel, context.layer, "block.kernel")
        dilation = 2**context.layer
        if config.dilation is not None:
            dilation = of_layer(config.dilation, context.layer, "block.dilation")
        output_width = config.output_width(context.width, context.layer)
        torchs = partial(nn.init.kaiming_uniform_, a=math.sqrt(5))
        convolutions = [
            Convolution(
                width,
                2 * output_width if config.gate else output_width,
                kernel,
                causal=context.causal,
                initial=torchs,
                dilation=dilation,
            )
            for width in (context.width, output_width)
        ]
        projection = None
        if config.residual and output_width != context.width:
            normal = partial(nn.init.normal_, std=0.01)
            projection = Convolution(
                context.width, output_width, 1, causal=context.causal, initial=normal, weight_norm=False
            )
        super().__init__(convolutions, projection)
        self.residual = config.residual
        for convolution in convolutions if projection is None else [*convolutions, projection]:
            bound = convolution.direction[0].numel() ** -0.5
            nn.init.uniform_(convolution.bias, -bound, bound)
        self.activate = F.glu if config.gate else F.relu
        self.dropout = context.dropout
        self.drop = channel_dropout if config.dropout_of == "channels" else dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'); the state has one entry for each convolution."""
        y, after = x, []
        for convolution, previous in self.each_with(state):
            y, new = convolution(y, context, previous)
            y = self.drop(self.activate(y), self.dropout, self.training)
            after.append(new)
        return F.relu(y + self.around(x, context) if self.residual else y), None if state is None else tuple(after)
