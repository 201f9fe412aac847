"""Multi-head self-attention."""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.context import Context, Place
from bakeoff.ops.attention import attention


class AttentionConfig(Config):
    """Scaled dot-product attention of Vaswani et al. 2017 (arXiv:1706.03762, section 3.2)."""

    kind: Literal["attention"] = "attention"
    """The mixer's name."""
    heads: int = Field(gt=0)
    """Number of heads; must divide the width."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the attention weights; the model's dropout where absent."""

    def build(self, place: Place) -> "Attention":
        """The mixer for one layer."""
        if place.width % self.heads:
            raise UserError(f"mixer.heads: {self.heads} heads do not divide the width {place.width}")
        dropout = place.dropout if self.dropout is None else self.dropout
        return Attention(place.width, self.heads, place.causal, dropout)


class Attention(nn.Module):
    """softmax(Q K^T / sqrt(D / H)) V with an output projection; B batch, T length, D width, H heads."""

    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.dropout = dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        projected = self.query_key_value(x).unflatten(-1, (3, self.heads, -1))  # (B, T, 3, H, D / H)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # each (B, H, T, D / H)
        dropout = self.dropout if self.training else 0.0
        mixed = attention(query, key, value, mask=context.attention_mask, causal=self.causal, dropout=dropout)
        return self.output(mixed.transpose(1, 2).flatten(-2))

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        width = self.output.in_features
        attended = (length + 1) / 2 if self.causal else length
        return round(2 * 4 * width * width + 2 * 2 * attended * width)
