"""Multi-head attention: of a text to itself, and of a decoder to its source."""

from typing import ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.context import Context, Place
from bakeoff.models.part import Part, State
from bakeoff.ops.attention import attention
from bakeoff.ops.rotary import rotate


class HeadsConfig(Config):
    """What attention to itself and to a source have in common."""

    heads: int = Field(gt=0)
    """Number of heads; must divide the width."""
    scaled: bool = True
    """Divide the scores by the root of a head's width; T5 does not."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the attention weights; the model's dropout where absent."""

    def checked(self, place: Place) -> float:
        """The dropout at that place.

        Raises:
            UserError: the heads do not divide the width.
        """
        if place.width % self.heads:
            raise UserError(f"mixer.heads: {self.heads} heads do not divide the width {place.width}")
        return place.dropout if self.dropout is None else self.dropout


class AttentionConfig(HeadsConfig):
    """Scaled dot-product attention of Vaswani et al. 2017 (arXiv:1706.03762, section 3.2)."""

    kind: Literal["attention"] = "attention"
    """The mixer's name."""
    positions: Literal["none", "rotary", "t5"] = "none"
    """Positions of its own: none, rotations of queries and keys (Su et al. 2021), or T5's bias by distance."""
    buckets: int = Field(default=32, ge=4)
    """Rows of T5's table."""
    distance: int = Field(default=128, gt=1)
    """Distance from which on all are alike to T5's table."""
    attends: ClassVar[bool] = True

    def build(self, place: Place) -> "Attention":
        """The mixer for one layer."""
        dropout = self.checked(place)
        if self.positions == "rotary" and place.width // self.heads % 2:
            raise UserError(f"mixer.positions: rotary needs heads of an even width, not {place.width // self.heads}")
        return Attention(self, place, dropout)


class Attention(Part):
    """softmax(Q K^T / sqrt(D / H)) V with an output projection; B batch, T length, S keys, D width, H heads."""

    def __init__(self, config: AttentionConfig, place: Place, dropout: float) -> None:
        super().__init__()
        self.heads = config.heads
        self.causal = place.causal
        self.dropout = dropout
        self.scale = None if config.scaled else 1.0
        self.positions = config.positions
        self.query_key_value = nn.Linear(place.width, 3 * place.width, bias=place.bias)
        self.output = nn.Linear(place.width, place.width, bias=place.bias)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the keys and values of all tokens so far."""
        projected = self.query_key_value(x).unflatten(-1, (3, self.heads, -1))  # (B, T, 3, H, D / H)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # each (B, H, T, D / H)
        if self.positions == "rotary":
            query, key = rotate(query, context.start), rotate(key, context.start)
        if state is not None:
            earlier_key, earlier_value = cast(tuple[Tensor, Tensor], state)
            key, value = torch.cat([earlier_key, key], dim=2), torch.cat([earlier_value, value], dim=2)
            state = (key, value)
        mixed = attention(
            query,
            key,
            value,
            mask=context.attention_mask,
            bias=context.attention_bias if self.positions == "t5" else None,
            causal=self.causal,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.output(mixed.transpose(1, 2).flatten(-2)), state

    def start(self, rows: int, like: Tensor) -> State:
        """No keys and no values."""
        empty = like.new_zeros(rows, self.heads, 0, self.output.in_features // self.heads)
        return (empty, empty)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        width = self.output.in_features
        attended = (length + 1) / 2 if self.causal else length
        return round(2 * 4 * width * width + 2 * 2 * attended * width)

    def reach(self) -> tuple[float, float]:
        """Everything, or everything before."""
        return float("inf"), 0 if self.causal else float("inf")


class CrossAttentionConfig(HeadsConfig):
    """Attention of a decoder's layer to the output of the encoder (Vaswani et al. 2017, section 3.2.3)."""

    def build(self, place: Place) -> "CrossAttention":
        """The part for one layer."""
        return CrossAttention(self, place, self.checked(place))


class CrossAttention(Part):
    """Queries come from the text, keys and values from the source; U tokens of the source."""

    def __init__(self, config: CrossAttentionConfig, place: Place, dropout: float) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = dropout
        self.scale = None if config.scaled else 1.0
        self.query = nn.Linear(place.width, place.width, bias=place.bias)
        self.key_value = nn.Linear(place.source or place.width, 2 * place.width, bias=place.bias)
        self.output = nn.Linear(place.width, place.width, bias=place.bias)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the keys and values of the source, empty before the first token."""
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, D / H)
        if state:
            key, value = cast(tuple[Tensor, Tensor], state)
        else:
            assert context.source is not None
            projected = self.key_value(context.source).unflatten(-1, (2, self.heads, -1))  # (B, U, 2, H, D / H)
            key, value = projected.permute(2, 0, 3, 1, 4)
            state = None if state is None else (key, value)
        dropout = self.dropout if self.training else 0.0
        mixed = attention(query, key, value, mask=context.source_mask, scale=self.scale, dropout=dropout)
        return self.output(mixed.transpose(1, 2).flatten(-2)), state

    def start(self, rows: int, like: Tensor) -> State:
        """Nothing has been computed from the source yet."""
        return ()

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass for a source of `length` tokens, its keys apart."""
        width = self.output.in_features
        return 2 * 2 * width * width + 2 * 2 * length * width

    def flops_per_source_token(self) -> int:
        """Floating-point operations of the keys and values of one token of the source."""
        return 2 * self.key_value.in_features * self.key_value.out_features
