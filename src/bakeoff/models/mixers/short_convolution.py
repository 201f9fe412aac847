"""The common part of convolutional mixers: a gated projection, the convolution, and a projection."""

from typing import ClassVar, Literal, cast

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part, State, last_inputs
from bakeoff.ops.dropout import dropout
from bakeoff.ops.short_convolution import short_convolution, tap_offsets

Normaliser = Literal["softmax", "none", "sigmoid", "tanh", "square", "abs", "l1", "l2", "abs_l2"]
"""Of a kernel's taps W: softmax(W), W itself, sigmoid(W), tanh(W), W^2, |W|, W / ||W||_1, W / ||W||_2, |W| / ||W||_2;
those that Wu et al. 2019 (arXiv:1901.10430, appendix) compare for dynamic kernels.
"""


def normalised(taps: Tensor, normaliser: Normaliser) -> Tensor:
    """(..., K) kernels of which the last dimension, their taps, is normalised."""
    if normaliser == "softmax":
        return taps.softmax(-1)
    if normaliser in ("sigmoid", "tanh"):
        return taps.sigmoid() if normaliser == "sigmoid" else taps.tanh()
    if normaliser in ("none", "square"):
        return taps if normaliser == "none" else taps.square()
    if normaliser in ("l1", "l2"):
        return F.normalize(taps, p=1.0 if normaliser == "l1" else 2.0, dim=-1)
    return taps.abs() if normaliser == "abs" else F.normalize(taps.abs(), dim=-1)


class ConvolutionConfig(MixerBaseConfig):
    """The fields of every convolutional mixer."""

    kernel: int | list[int]
    """Kernel size, or a list with one for each layer."""
    dilation: int | list[int] = 1
    """Distance between the taps, or a list with one for each layer."""
    gate: bool = True
    """The input projection is a gated linear unit, W_I x * sigmoid(W_S x); false: W_I x alone."""
    input_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the input projection's input; the published code of Wu et al. 2019 has 0.1 for its large models."""

    hides_ahead: ClassVar[bool] = True

    def taps(self, context: BuildContext) -> int:
        """The kernel size of a layer."""
        return of_layer(self.kernel, context.layer, "mixer.kernel")

    def holes(self, context: BuildContext) -> int:
        """The dilation of a layer."""
        return of_layer(self.dilation, context.layer, "mixer.dilation")


class HeadsConfig(ConvolutionConfig):
    """The fields of mixers whose kernels are shared by channels and normalised over their taps."""

    scales_with_width: ClassVar = frozenset({"heads"})

    heads: int = Field(gt=0)
    """Number of kernels; head h covers a contiguous run of width / heads channels."""
    normaliser: Normaliser = "softmax"
    """What is made of a kernel's taps before they are applied; without the softmax training may diverge."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """DropConnect: dropout of the kernels' taps after they are normalised."""

    @property
    def head_count(self) -> int | None:
        """Number of kernels."""
        return self.heads

    def require_heads_that_divide(self, width: int) -> None:
        """Raise a UserError where the number of heads does not divide the width."""
        if width % self.heads:
            raise UserError(f"mixer.heads: {self.heads} heads do not divide the width {width}")


def of_layer(value: int | list[int], layer: int, key: str) -> int:
    """The value for a layer, from one value for all layers or from a list.

    Raises:
        UserError: the list is too short, or the value is not positive.
    """
    if isinstance(value, int):
        size = value
    elif layer < len(value):
        size = value[layer]
    else:
        raise UserError(
            f"{key}: the list has {len(value)} sizes, but there is a layer {layer + 1}; set it in the recipe to one "
            "for each layer"
        )
    if size < 1:
        raise UserError(f"{key}: {size} is not a positive number")
    return size


class GatedShortConvolution(Part):
    """W_O Conv(W_I x * sigmoid(W_S x)); B batch, T length, D width, H heads, K kernel size.

    The block of Tay et al. 2021 (arXiv:2105.03322, section 3.2) and of Wu et al. 2019 (arXiv:1901.10430); a subclass
    gives the convolution.
    """

    skips_padding = True

    def __init__(self, config: ConvolutionConfig, context: BuildContext) -> None:
        super().__init__()
        self.causal = context.causal
        self.gate = config.gate
        self.input_dropout = config.input_dropout
        self.kernel = config.taps(context)
        self.dilation = config.holes(context)
        self.input = Linear(context.width, 2 * context.width if config.gate else context.width, bias=context.bias)
        self.output = Linear(context.width, context.width, bias=context.bias)

    def convolve(self, x: Tensor, documents: Tensor | None, left: Tensor | None, behind: bool = False) -> Tensor:
        """(B, T, D) to (B, T, D); `left`, (B, (K - 1) * dilation, D), is the inputs before the first.

        If `behind`, a centred kernel is read up to the tap of the present token.
        """
        raise NotImplementedError

    def taps_behind(self, behind: bool) -> int | None:
        """The number of first taps that are read: those of a centred kernel that do not look ahead; None: all."""
        return self.kernel // 2 + 1 if behind else None

    def convolution_flops(self) -> int:
        """Floating-point operations of the convolution at one position."""
        return 2 * self.kernel * self.output.in_features

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the last inputs of the convolution, as many as it looks back."""
        x = self.convolved(x, context)
        left = cast(Tensor | None, state)
        mixed = self.convolve(x, context.row.documents, left, context.row.behind)
        if context.packing is not None:
            mixed = context.packing.packed(mixed)
        return self.output(mixed), last_inputs(left, x)

    @property
    @override
    def reads_packed(self) -> bool:
        return True

    def convolved(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) input of the convolution."""
        x = self.input(dropout(x, self.input_dropout, self.training))
        if self.gate:
            x = F.glu(x)
        if context.packing is not None:
            return context.packing.spread(x)
        if context.row.padding_mask is not None:
            x = (
                x * context.row.padding_mask[..., None]
            )  # here and not earlier: the projection's bias makes padding non-zero again
        return x

    def offsets(self) -> list[int]:
        """Distance of each tap from the output, in tokens; negative before it."""
        return tap_offsets(self.kernel, self.causal, self.dilation)

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros to the left of the first token."""
        return like.new_zeros(rows, (self.kernel - 1) * self.dilation, self.output.in_features)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass; the row's length does not matter."""
        width = self.output.in_features
        return 2 * width * (self.input.out_features + width) + self.convolution_flops()


class ShortConvolution(GatedShortConvolution):
    """A convolution with one number a tap for each channel or run of channels; a subclass gives the kernels."""

    def weight(self, x: Tensor, read: int | None = None) -> Tensor:
        """(H, K) kernels, or (B, T, H, K) where they depend on the (B, T, D) states that are convolved.

        With `read` they have so many taps, the first ones.
        """
        raise NotImplementedError

    def kernels(self, x: Tensor, context: Context) -> Tensor:
        """The weights of the taps."""
        return self.weight(self.convolved(x, context))

    @override
    def convolve(self, x: Tensor, documents: Tensor | None, left: Tensor | None, behind: bool = False) -> Tensor:
        weight, causal = self.weight(x, self.taps_behind(behind)), self.causal or behind
        return short_convolution(x, weight, causal=causal, dilation=self.dilation, documents=documents, left=left)
