"""Gated convolutional network: residual blocks of convolutions with a gated linear unit each."""

import math
from functools import partial
from typing import ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.blocks.block import BlockBaseConfig, refuse_source
from bakeoff.models.blocks.convolution import Convolution, Convolutions
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import dropout

Residual = Literal["sum", "scaled", "none"]
Gate = Literal["glu", "gtu", "bilinear", "relu", "tanh", "none"]


class GatedConvolutionConfig(Config):
    """One convolution of a block, [k, n] in the paper's tables."""

    scales_with_width: ClassVar = frozenset({"width"})

    kernel: int = Field(gt=0)
    """K, the kernel size."""
    width: int = Field(gt=0)
    """Width of the output; each of its channels has a gate of its own."""


class GatedCnnBlockConfig(BlockBaseConfig):
    """A residual block of Dauphin et al. 2017 (arXiv:1612.08083, section 2); a bottleneck has kernels 1, k and 1."""

    kind: Literal["gated_cnn"] = "gated_cnn"
    """The block's name."""
    convolutions: list[GatedConvolutionConfig] = Field(min_length=1)
    """The block's convolutions in the order of their application."""
    residual: Residual = "sum"
    """The summand of the residual connection: the block's input (sum), the input with the sum times sqrt(1/2) (scaled,
    as in the published code), or nothing (none). An input of another width goes through a 1x1 convolution.
    """
    gate: Gate = "glu"
    """The combination of the convolutions A and B (section 5.2): A sigmoid(B) (glu), tanh(A) sigmoid(B) (gtu), A B
    (bilinear); without B, and so with half of the weights, relu(A), tanh(A), or A itself (none).
    """
    weight_norm: bool = True
    """The convolutions are weight-normalised (section 4.2)."""

    def output_width(self, width: int, layer: int) -> int:
        """The width of the last convolution."""
        return self.convolutions[-1].width

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The one part of a layer.

        Raises:
            UserError: there is an encoder to attend to.
        """
        refuse_source(self.kind, context)
        return {"mixer": GatedConvolutions(self, context)}


class GatedConvolutions(Convolutions):
    """y = x + h_n(... h_1(x)) with h(x) = (W * x + b) sigmoid(V * x + c), where * is a convolution (equation 1).

    Other gates have other h(x). Dropout stands before each convolution, and the convolutions of both branches begin
    with weights of variance 2 / (K D) (He et al. 2015, arXiv:1502.01852).
    """

    def __init__(self, config: GatedCnnBlockConfig, context: BuildContext) -> None:
        width, convolutions = context.width, []
        branches = 2 if config.gate in GATED else 1
        for each in config.convolutions:
            convolution = Convolution(
                width,
                branches * each.width,
                each.kernel,
                causal=context.causal,
                initial=nn.init.kaiming_normal_,
                weight_norm=config.weight_norm,
            )
            convolutions.append(convolution)
            width = each.width
        projection = None
        if config.residual != "none" and width != context.width:
            linear = partial(nn.init.kaiming_normal_, nonlinearity="linear")
            projection = Convolution(
                context.width, width, 1, causal=context.causal, initial=linear, weight_norm=config.weight_norm
            )
        super().__init__(convolutions, projection)
        self.residual = config.residual
        self.gate: Gate = config.gate
        self.dropout = context.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'); the state has one entry for each convolution."""
        y, after = x, []
        for convolution, previous in self.each_with(state):
            y, new = convolution(dropout(y, self.dropout, self.training), context, previous)
            y = gated(y, self.gate)
            after.append(new)
        if self.residual != "none":
            y = y + self.around(x, context)
        if self.residual == "scaled":
            y = y * math.sqrt(0.5)
        return y, None if state is None else tuple(after)


GATED = ("glu", "gtu", "bilinear")
"""The gates that need a second convolution."""


def gated(x: Tensor, gate: Gate) -> Tensor:
    """The gated (B, T, D): from A and B side by side, (B, T, 2 D), or from (B, T, D) A alone for a gate without B."""
    if gate == "relu":
        return F.relu(x)
    if gate == "tanh":
        return x.tanh()
    if gate == "none":
        return x
    a, b = x.chunk(2, dim=-1)
    if gate == "bilinear":
        return a * b
    return F.glu(x) if gate == "glu" else a.tanh() * b.sigmoid()
