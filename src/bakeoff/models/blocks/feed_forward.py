"""The feed-forward network of a transformer's block."""

from typing import ClassVar, Literal, cast

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.config import Config
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.neighbour_convolution import NeighbourConvolution
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import dropout
from bakeoff.ops.gelu import gelu


class FeedForwardConfig(Config):
    """Two linear layers with an activation between them, applied at each position alone or to its neighbours too."""

    scales_with_width: ClassVar = frozenset({"width"})

    width: int = Field(gt=0)
    """Width between the two linear layers."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """The activation; gelu_tanh is BERT's approximation."""
    gate: bool = False
    """A gate: the output of the activation is multiplied by a third linear layer of the input (Shazeer 2020,
    arXiv:2002.05202; T5's version 1.1).
    """
    bias: bool | None = None
    """The linear layers have biases; absent: as the model's `bias` says."""
    inner_norm: bool = False
    """A norm of the last linear layer's input, after the gate (NormFormer: Shleifer et al. 2021, arXiv:2110.09456)."""
    convolution: int | None = Field(default=None, ge=2)
    """K, the number of taps of a depthwise convolution over the network's input, centred in encoders and causal in
    decoders, also within a prefix that is seen from both sides (Canon's layer C: Allen-Zhu 2025, arXiv:2512.17351, but
    without its residual connection). Absent: every position is read alone.
    """
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout after the activation and the gate, as in Transformer-XL, XLNet and T5; BERT and GPT have none."""

    def build(self, context: BuildContext) -> "FeedForward":
        """The network for one layer."""
        return FeedForward(self, context)


class FeedForward(Part):
    """W_2 dropout(y), y = activation(W_1 x), with a gate activation(W_1 x) * V x; or W_2 dropout(norm(y)).

    With `convolution`, x is the input convolved over time.
    """

    skips_padding = True

    def __init__(self, config: FeedForwardConfig, context: BuildContext) -> None:
        super().__init__()
        bias = context.bias if config.bias is None else config.bias
        taps = config.convolution
        self.convolution = None if taps is None else NeighbourConvolution(context.width, taps, context.causal)
        self.input = Linear(context.width, config.width, bias=bias)
        self.gate = Linear(context.width, config.width, bias=bias) if config.gate else None
        self.norm = context.norm(config.width) if config.inner_norm else nn.Identity()
        self.output = Linear(config.width, context.width, bias=bias)
        self.activation = config.activation
        self.dropout = config.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the inputs to the left of the convolution, where there is one."""
        if self.convolution is not None:
            x, state = self.convolution(x, context, cast(Tensor | None, state))
        inner = activate(self.input(x), self.activation, None if self.gate is None else self.gate(x))
        return self.output(dropout(self.norm(inner), self.dropout, self.training), context.beside), state

    @property
    def adds(self) -> bool:  # type: ignore[override]
        """Whether the residual connection is added within; a subclass may do more to what comes out."""
        return type(self) is FeedForward

    @property
    @override
    def reads_packed(self) -> bool:
        return self.convolution is None

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros to the left of the first token, or None without a convolution."""
        return None if self.convolution is None else self.convolution.start(rows, like)

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """(D, K) the taps of each channel, None without a convolution."""
        return None if self.convolution is None else self.convolution.taps

    def offsets(self) -> list[int]:
        """Distance of each of these taps from the output, in tokens; negative before it."""
        return [] if self.convolution is None else self.convolution.offsets()

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        maps = 2 if self.gate is None else 3
        taps = 0 if self.convolution is None else self.convolution.flops_per_token()
        return 2 * maps * self.input.in_features * self.input.out_features + taps


def activate(x: Tensor, activation: str, gate: Tensor | None = None) -> Tensor:
    """The named activation of x, times a gate if there is one."""
    if activation == "relu":
        return F.relu(x) if gate is None else F.relu(x) * gate
    return gelu(x, activation == "gelu_tanh", gate)
