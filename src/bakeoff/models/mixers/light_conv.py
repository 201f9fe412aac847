"""Lightweight convolution: a short depthwise convolution whose few kernels are softmax-normalised and shared."""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.context import Context, Place
from bakeoff.ops.dropout import dropout
from bakeoff.ops.short_convolution import short_convolution


class LightConvConfig(Config):
    """LightConv of Wu et al. 2019 (arXiv:1901.10430, section 3), between two projections."""

    kind: Literal["light_conv"] = "light_conv"
    """The mixer's name."""
    kernel: int | list[int]
    """Kernel size, or one for each layer."""
    heads: int = Field(gt=0)
    """Number of kernels; head h covers a contiguous run of width / heads channels."""
    gate: bool = True
    """The input projection is a gated linear unit, W_I x * sigmoid(W_S x), else W_I x alone."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """DropConnect: dropout of the kernels' taps after the softmax."""

    def build(self, place: Place) -> "LightConv":
        """The mixer for one layer."""
        if place.width % self.heads:
            raise UserError(f"mixer.heads: {self.heads} heads do not divide the width {place.width}")
        return LightConv(place.width, kernel_of(self.kernel, place.layer), self, place.causal)


def kernel_of(kernel: int | list[int], layer: int) -> int:
    """The kernel size of a layer."""
    if isinstance(kernel, int):
        size = kernel
    elif layer < len(kernel):
        size = kernel[layer]
    else:
        raise UserError(f"mixer.kernel: the list has {len(kernel)} sizes, but there is a layer {layer + 1}")
    if size < 1:
        raise UserError(f"mixer.kernel: {size} is not a positive number")
    return size


class LightConv(nn.Module):
    """W_O LightConv(W_I x * sigmoid(W_S x)); B batch, T length, D width, H heads, K kernel size."""

    def __init__(self, width: int, kernel: int, config: LightConvConfig, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.gate = config.gate
        self.weight_dropout = config.weight_dropout
        self.input = nn.Linear(width, 2 * width if config.gate else width)
        self.taps = nn.Parameter(torch.empty(config.heads, kernel))  # (H, K) before the softmax
        self.output = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.taps)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        x = self.input(x)
        if self.gate:
            x = F.glu(x)
        if context.real is not None:
            x = x * context.real[..., None]  # here and not earlier: the projection's bias makes padding non-zero again
        weight = dropout(self.taps.softmax(-1), self.weight_dropout, self.training)
        return self.output(short_convolution(x, weight, causal=self.causal, documents=context.documents))

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass; the row's length does not matter."""
        width = self.output.in_features
        return 2 * width * (self.input.out_features + width) + 2 * self.taps.shape[1] * width
