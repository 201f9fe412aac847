"""Convolution and gating of genCNN, which reduce a window of words to one vector.

Shapes: S slots of a window, N windows, D width, K kernel size, P positions of the kernel, F feature maps.
"""

from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from bakeoff.config import Config

Gate = Literal["shared", "per_position"]


class WindowConfig(Config):
    """The sizes of one of the two convolutional networks of genCNN."""

    window: int = Field(gt=0)
    """Number of words, the history's summary before them not counted."""
    time_flow: list[int] = Field(min_length=1)
    """Number of feature maps of each convolution that has the same weights at all positions."""
    time_arrow: list[int] = Field(default=[])
    """Number of feature maps of each convolution that has weights of its own at every position; absent: none."""

    @model_validator(mode="after")
    def _a_number_for_each_convolution(self) -> "WindowConfig":
        if self.time_arrow and len(self.time_arrow) != len(self.time_flow):
            raise ValueError(
                f"time_arrow has {len(self.time_arrow)} numbers and time_flow {len(self.time_flow)}; give one each for "
                "every convolution"
            )
        return self

    def build(self, width: int, kernel: int, gate: Gate, output: int) -> "WindowNetwork":
        """The network for words of width `width`."""
        return WindowNetwork(self, width, kernel, gate, output)


class WindowNetwork(nn.Module):
    """Convolutions with gatings after them, and a fully connected layer sigmoid(W [z_1; ...; z_P] + b)."""

    def __init__(self, config: WindowConfig, width: int, kernel: int, gate: Gate, output: int) -> None:
        super().__init__()
        self.window = config.window
        slots = config.window + 1
        layers = []
        for flow, arrow in zip(config.time_flow, config.time_arrow or [0] * len(config.time_flow), strict=True):
            layers.append(GatedConvolution(slots, width, kernel, flow, arrow, gate))
            slots, width = layers[-1].slots_left, flow + arrow
        self.layers = nn.ModuleList(layers)
        self.output = nn.Linear(slots * width, output)

    def initialise(self) -> None:
        """Draw the fully connected layer as Glorot and Bengio 2010, four times as large because of the sigmoid.

        With the deviation of other linear layers, 0.02, the outputs would hardly leave 1/2, and learning would begin
        slowly.
        """
        for layer in self.layers:
            cast(GatedConvolution, layer).initialise()
        nn.init.xavier_normal_(self.output.weight, gain=4)
        nn.init.zeros_(self.output.bias)

    def forward(self, history: Tensor, words: Tensor) -> Tensor:
        """(N, D) summaries of the earlier words, zero where there are none, and (S - 1, N, D) words to (N, D')."""
        x = torch.cat([history[None].to(words.dtype), words])
        for layer in self.layers:
            x = layer(x)
        return torch.sigmoid(self.output(x.transpose(0, 1).flatten(1)))

    def flops_per_window(self) -> int:
        """Floating-point operations of one window's forward pass."""
        layers = sum(cast(GatedConvolution, layer).flops_per_window() for layer in self.layers)
        return layers + 2 * self.output.in_features * self.output.out_features


class GatedConvolution(nn.Module):
    """A convolution without padding, and a gate between every two neighbours in place of pooling.

    Wang et al. 2015 (arXiv:1503.05034, sections 3.1 and 3.2), with v_i = [x_i; ...; x_(i+K-1)]:
    z_i = relu(W_TF v_i + b_TF) for time-flow maps and relu(W_TA,i v_i + b_TA,i) for time-arrow maps;
    g_j = sigmoid(w_g [z_(2j-1); z_2j]), y_j = g_j z_(2j-1) + (1 - g_j) z_2j. Where P is odd, y has z_P at its end.
    """

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, slots: int, width: int, kernel: int, flow: int, arrow: int, gate: Gate) -> None:
        super().__init__()
        self.positions = slots - kernel + 1
        self.slots_left = -(-self.positions // 2)
        self.flow = nn.Parameter(torch.empty(kernel, width, flow))
        self.arrow = nn.Parameter(torch.empty(self.positions, kernel, width, arrow)) if arrow else None
        self.flow_bias = nn.Parameter(torch.empty(flow))
        # A vector, for the optimizer decays what has more dimensions.
        self.arrow_bias = nn.Parameter(torch.empty(self.positions * arrow)) if arrow else None
        pairs = self.positions // 2
        gates = pairs if gate == "per_position" else min(1, pairs)
        self.gate = nn.Parameter(torch.empty(gates, 2, flow + arrow, 1)) if gates else None

    def initialise(self) -> None:
        """Draw feature maps as He et al. 2015 (arXiv:1502.01852), so that ReLU keeps their size; the rest are zero."""
        kernel, width, _ = self.flow.shape
        for weight in (self.flow, self.arrow):
            if weight is not None:
                nn.init.normal_(weight, std=(2 / (kernel * width)) ** 0.5)
        for parameter in (self.flow_bias, self.arrow_bias, self.gate):
            if parameter is not None:
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        """(S, N, D) to (P / 2, N, F)."""
        # Time-flow maps are time-arrow maps whose weights happen to be equal: one product for each tap does both.
        weight = self.flow.expand(self.positions, -1, -1, -1)
        bias = self.flow_bias.expand(self.positions, 1, -1)
        if self.arrow is not None and self.arrow_bias is not None:
            weight = torch.cat([weight, self.arrow], dim=-1)  # (P, K, D, F)
            bias = torch.cat([bias, self.arrow_bias.view(self.positions, 1, -1)], dim=-1)  # (P, 1, F)
        z = bias
        for tap in range(weight.shape[1]):
            z = torch.baddbmm(z, x[tap : tap + self.positions], weight[:, tap])
        return self._merge(F.relu(z))

    def _merge(self, z: Tensor) -> Tensor:
        """Merge pairs of neighbouring positions by the gate."""
        if self.gate is None:
            return z
        pairs = self.positions // 2
        first, second = z[0 : 2 * pairs : 2], z[1 : 2 * pairs : 2]  # (P / 2, N, F)
        gate = torch.sigmoid(first @ self.gate[:, 0] + second @ self.gate[:, 1])  # (P / 2, N, 1)
        merged = torch.lerp(second, first, gate.to(z.dtype))
        return torch.cat([merged, z[2 * pairs :]]) if self.positions % 2 else merged

    def flops_per_window(self) -> int:
        """Floating-point operations of one window's forward pass."""
        kernel, width, flow = self.flow.shape
        maps = flow + (0 if self.arrow is None else self.arrow.shape[-1])
        return 2 * (self.positions * kernel * width * maps + self.positions // 2 * 2 * maps)
