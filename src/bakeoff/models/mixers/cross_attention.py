"""Multi-head attention of a decoder to its source."""

from typing import ClassVar, cast

from torch import Tensor

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.attention_heads import AttentionHeadsConfig, unfit_heads
from bakeoff.models.part import Part, State
from bakeoff.ops.attention import attention
from bakeoff.ops.attention_heads import split_heads
from bakeoff.ops.document_attention import source_attention


class CrossAttentionConfig(AttentionHeadsConfig):
    """Attention of a decoder's layer to the output of the encoder (Vaswani et al. 2017, section 3.2.3)."""

    stands_at: ClassVar[str] = "cross"

    def needs_mask(self, context: BuildContext) -> str | None:
        """The reason why the source's padding needs a mask; None: FlashAttention passes over it."""
        return unfit_heads(self.widths(context))

    def build(self, context: BuildContext) -> "CrossAttention":
        """The part for one layer."""
        return CrossAttention(self, context)


class CrossAttention(Part):
    """Attention with queries from the text, keys and values from the source; U tokens of the source."""

    skips_padding = True

    def __init__(self, config: CrossAttentionConfig, context: BuildContext) -> None:
        super().__init__()
        self.heads = config.heads
        self.widths = config.widths(context)
        self.dropout = config.rate(context)
        self.scale = None if config.scaled else 1.0
        self.query = Linear(context.width, self.heads * self.widths.key, bias=context.bias)
        self.key_value = Linear(context.source or context.width, self.heads * sum(self.widths), bias=context.bias)
        self.output = Linear(self.heads * self.widths.value, context.width, bias=context.bias)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the keys and values of the source, empty before the first token."""
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, d_k)
        if state:
            key, value = cast(tuple[Tensor, Tensor], state)
        else:
            assert context.source is not None
            key, value = split_heads(self.key_value(context.source), self.heads, self.widths)
            state = None if state is None else (key, value)
        dropout = self.dropout if self.training else 0.0
        if context.source_bounds is not None:
            bounds = context.source_bounds
            mixed = source_attention(query, key, value, bounds, scale=self.scale, dropout=dropout)
        else:
            mixed = attention(query, key, value, mask=context.source_mask, scale=self.scale, dropout=dropout)
        return self.output(mixed.transpose(1, 2).flatten(-2)), state

    def start(self, rows: int, like: Tensor) -> State:
        """Empty, as nothing has been computed from the source yet."""
        return ()

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass for `length` source tokens, without keys and values."""
        maps = self.query.weight.numel() + self.output.weight.numel()
        return 2 * maps + 2 * length * self.heads * sum(self.widths)

    def flops_per_source_token(self) -> int:
        """Floating-point operations for the keys and values of one token of the source."""
        return 2 * self.key_value.in_features * self.key_value.out_features
