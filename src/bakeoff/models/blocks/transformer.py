"""The transformer's block: a token mixer and a feed-forward network, each with a residual connection and a norm."""

from typing import Literal, cast

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.context import Context, Place
from bakeoff.models.mixers import MixerConfig
from bakeoff.ops.dropout import dropout

Norm = Literal["post", "pre", "branch"]


class FeedForwardConfig(Config):
    """Two linear maps with an activation between them, at every position alike."""

    width: int = Field(gt=0)
    """Width between the two maps."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """The activation; gelu_tanh is BERT's approximation."""

    def build(self, place: Place) -> "FeedForward":
        """The network for one layer."""
        return FeedForward(place.width, self.width, self.activation)


class FeedForward(nn.Module):
    """W_2 activation(W_1 x)."""

    def __init__(self, width: int, inner: int, activation: str) -> None:
        super().__init__()
        self.input = nn.Linear(width, inner)
        self.output = nn.Linear(inner, width)
        self.activation = activation

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self.output(activate(self.input(x), self.activation))

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        return 2 * 2 * self.input.in_features * self.input.out_features


def activate(x: Tensor, activation: str) -> Tensor:
    """The named activation of x."""
    if activation == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


class Sublayer(nn.Module):
    """A function with its residual connection, dropout and norm, which is what layers share as one part.

    post: norm(x + f(x)), the Transformer and BERT; pre: x + f(norm(x)), GPT-2; branch: x + norm(f(x)), printed in
    Tay et al. 2021 (arXiv:2105.03322).
    """

    def __init__(self, function: nn.Module, norm: Norm, place: Place) -> None:
        super().__init__()
        self.function = function
        self.norm = nn.LayerNorm(place.width, eps=place.norm_epsilon)
        self.placement = norm
        self.dropout = place.dropout

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        y = self.function(self.norm(x) if self.placement == "pre" else x, context)
        y = dropout(y, self.dropout, self.training)
        if self.placement == "branch":
            return x + self.norm(y)
        return self.norm(x + y) if self.placement == "post" else x + y

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        return cast(FeedForward, self.function).flops_per_token(length)


class TransformerBlockConfig(Config):
    """A block of mixer and feed-forward network; its shareable parts are these two, each with its norm."""

    kind: Literal["transformer"] = "transformer"
    """The block's name."""
    repeat: int | None = Field(default=None, gt=0)
    """How many layers in a row have this block, where `block` is a list."""
    norm: Norm = "post"
    """Where the layer norm stands: behind the sum (post), before the function (pre), on its output (branch)."""
    mixer: MixerConfig
    """What mixes tokens."""
    ffn: FeedForwardConfig
    """The feed-forward network."""

    @property
    def needs_final_norm(self) -> bool:
        """With the norms inside the branches, nothing has normalised what leaves the last layer."""
        return self.norm == "pre"

    def build(self, place: Place) -> dict[str, nn.Module]:
        """The parts of one layer in the order in which they are applied."""
        return {
            "mixer": Sublayer(self.mixer.build(place), self.norm, place),
            "ffn": Sublayer(self.ffn.build(place), self.norm, place),
        }
