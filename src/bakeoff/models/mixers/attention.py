"""Multi-head attention of a text to itself."""

from typing import Any, ClassVar, Literal, Self, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.attention_heads import AttentionHeadsConfig, Gate, HeadNorm, unfit_heads
from bakeoff.models.mixers.keys_and_values import chosen_queries, continued
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.neighbour_convolution import NeighbourConvolution
from bakeoff.models.packing import at_positions
from bakeoff.models.part import Part, State
from bakeoff.ops.attention import attention
from bakeoff.ops.attention_heads import attention_heads
from bakeoff.ops.document_attention import document_attention
from bakeoff.ops.gelu import gelu
from bakeoff.ops.projected_heads import ProjectedHeads
from bakeoff.ops.rotary import BASE
from bakeoff.ops.self_attention import self_attention_at_once
from bakeoff.ops.windowed_attention import seen_pairs, windowed_attention


class AttentionConfig(AttentionHeadsConfig, MixerBaseConfig):
    """Scaled dot-product attention of Vaswani et al. 2017 (arXiv:1706.03762, section 3.2)."""

    kind: Literal["attention"] = "attention"
    """The mixer's name."""
    positions: Literal["none", "rotary", "t5"] = "none"
    """Positions of its own: none, rotations of queries and keys (Su et al. 2021), or T5's bias by distance."""
    rotary_base: float = Field(default=BASE, gt=1)
    """The base of the rotations' wavelengths; a larger base distinguishes positions that are farther apart (ModernBERT:
    160000).
    """
    window: int | None = Field(default=None, gt=0)
    """W: a token sees tokens at most W positions away, on both sides in encoders, before it in decoders, whose state
    then holds the last W tokens (Beltagy et al. 2020, arXiv:2004.05150). ModernBERT's local attention of 128 tokens is
    a W of 64. Absent: a token sees all.
    """
    buckets: int = Field(default=32, ge=4)
    """Number of rows of T5's table."""
    distance: int = Field(default=128, gt=1)
    """Distance from which on all distances share the last row of T5's table."""
    two_sided: bool = False
    """T5's table has rows for distances ahead in a decoder, too, for prefixes that are seen from both sides."""
    query_key_norm: bool = False
    """Queries and keys are divided by their root mean square, head by head, and multiplied by learned gains, before
    rotary positions (Henry et al. 2020, arXiv:2010.04245; Dehghani et al. 2023, arXiv:2302.05442)."""
    convolution: int | None = Field(default=None, ge=2)
    """K, the number of taps of a depthwise convolution over queries, keys and values after their projection, centred
    in encoders and causal in decoders, also within a prefix that is seen from both sides (Primer: So et al. 2021,
    arXiv:2109.08668, section 3, where K is 3). Absent: no convolution.
    """
    gate: Gate = "none"
    """Factor of each element of the heads' output before the output layer: none, or gelu of a further linear layer of
    the input, as in GPT-BERT (Charpentier and Samuel 2024, arXiv:2410.24159).
    """
    value_residual: bool = False
    """Values are mixed with those of the first layer that has this, before a convolution, in a share that each layer
    learns, half and half at first (Zhou et al. 2024, arXiv:2410.17897, learned as in modded-nanogpt).
    """
    attends: ClassVar[bool] = True
    hides_ahead: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        """Whether the memory is bounded, which it is only with a window."""
        return self.window is not None

    @property
    def counts_positions(self) -> bool:
        """Whether positions are counted: rotations and T5's bias start at the first token that is read."""
        return self.positions != "none"

    @property
    def attention_window(self) -> int | None:
        """W, the distance in tokens to the farthest attended token; None: there is no bound."""
        return self.window

    @override
    def attention_dropout(self, context: BuildContext) -> float:
        return self.rate(context)

    @override
    def widest_head(self, context: BuildContext) -> int:
        return max(self.widths(context))

    @override
    def needs_mask(self, context: BuildContext) -> str | None:
        return "T5's bias by distance" if self.positions == "t5" else unfit_heads(self.widths(context))

    @property
    def shares_distance_bias(self) -> bool:
        """True with T5's positions, whose bias the layers of a stack share."""
        return self.positions == "t5"

    @property
    def blind_ahead(self) -> bool:
        """Whether distances ahead look alike: with T5's positions, unless the table is two-sided."""
        return self.positions == "t5" and not self.two_sided

    @model_validator(mode="after")
    def _a_table_to_divide(self) -> Self:
        if self.two_sided and self.positions != "t5":
            raise ValueError(f"two_sided: it is about T5's table, and positions is {self.positions}; leave it out")
        if self.rotary_base != BASE and self.positions != "rotary":
            raise ValueError(f"rotary_base: it is about rotations, and positions is {self.positions}; leave it out")
        return self

    @override
    def build(self, context: BuildContext) -> "Attention":
        width = self.widths(context).key
        if self.positions == "rotary" and width % 2:
            raise UserError(f"mixer.positions: rotary needs heads of an even width, not {width}")
        return Attention(self, context)


class Attention(Part):
    """softmax(Q K^T / sqrt(d_k)) V with an output projection.

    With `convolution`, Q, K and V are each convolved over time first. With `query_key_norm`, each head's queries and
    keys are normalised: q <- g_q q / rms(q), k <- g_k k / rms(k). With a `gate`, the input of the output layer W_O is
    multiplied by gelu(W_G x). With a `window`, the softmax is over the tokens within it. With `value_residual`, V is
    mixed with that of an earlier layer, before a convolution.

    Shapes: B batch, T length, S keys, D width, H heads, d_k and d_v the widths of a head's keys and values.
    """

    skips_padding = True

    def __init__(self, config: AttentionConfig, context: BuildContext) -> None:
        super().__init__()
        self.heads = config.heads
        self.widths = config.widths(context)
        self.causal = context.causal
        self.dropout = config.rate(context)
        self.scale = None if config.scaled else 1.0
        self.positions, self.rotary_base = config.positions, config.rotary_base
        self.window, self.value_residual = config.window, config.value_residual
        self.query_key_value = Linear(
            context.width, self.heads * (2 * self.widths.key + self.widths.value), bias=context.bias
        )
        self.output = Linear(self.heads * self.widths.value, context.width, bias=context.bias)
        inner = self.output.in_features
        self.gate = None if config.gate == "none" else Linear(context.width, inner, bias=context.bias)
        channels, taps = self.query_key_value.out_features, config.convolution
        self.convolution = None if taps is None else NeighbourConvolution(channels, taps, context.causal)
        self.query_norm = HeadNorm(self.widths.key, context.norm_epsilon) if config.query_key_norm else None
        self.key_norm = HeadNorm(self.widths.key, context.norm_epsilon) if config.query_key_norm else None

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D).

        The state is the keys and values of all tokens so far, or of those in a window, and the inputs to the left of a
        convolution.
        """
        earlier, left = self._parted(state)
        projected = self.query_key_value(x)
        if self.value_residual and context.first_values is not None:
            channels = self.heads * self.widths.value
            projected = context.first_values.mixed(projected, channels, context.value_share, context.packing)
        if self.convolution is not None:
            projected, left = self.convolution(projected, context, left)
        if context.packing is not None:
            projected = context.packing.padded(projected)
        gains, epsilon = None, 0.0
        if self.query_norm is not None and self.key_norm is not None:
            gains, epsilon = (self.query_norm.weight, self.key_norm.weight), self.query_norm.eps
        base = self.rotary_base if self.positions == "rotary" else None
        widths = self.widths.key, *self.widths
        heads = ProjectedHeads(self.heads, widths, gains, epsilon, context.start, base)
        rate = self.dropout if self.training else 0.0
        causal = self.causal or context.row.behind
        settings: dict[str, Any] = {"causal": causal, "scale": self.scale, "dropout": rate}
        mixed: Tensor | None = None
        if earlier is None and context.wanted is None and context.bounds is None and self.positions != "t5":
            mask, window = context.attention_mask, self.window
            mixed = self_attention_at_once(projected, heads, mask=mask, window=window, **settings)
        if mixed is None:
            query, key, value = attention_heads(projected, heads)
            if earlier is not None:
                if self.window is None:
                    key, keys = continued(earlier[0], key, context)
                    value, values = continued(earlier[1], value, context)
                else:  # no more is remembered than the window, so that nothing is written in place
                    key, value = torch.cat([earlier[0], key], dim=2), torch.cat([earlier[1], value], dim=2)
                    keys, values = key[:, :, -self.window :], value[:, :, -self.window :]
                state = (keys, values) if left is None else (keys, values, left)
            mixed = self._attended(query, key, value, context, settings).transpose(1, 2).flatten(-2)
        if context.wanted is not None:
            x = x if self.gate is None else at_positions(x, context.wanted, context.packing)
        elif context.packing is not None:
            mixed = context.packing.packed(mixed)
        if self.gate is not None:
            mixed = gelu(self.gate(x), gate=mixed)
        return self.output(mixed, context.beside), state

    def _attended(
        self, query: Tensor, key: Tensor, value: Tensor, context: Context, settings: dict[str, Any]
    ) -> Tensor:
        """(B, H, T, d_v) the weighted values, or (B, H, M, d_v) of the wanted positions."""
        bias = context.attention_bias if self.positions == "t5" else None
        mask = context.attention_mask
        if context.wanted is not None:
            query, mask, bias = chosen_queries(query, key, mask, bias, settings["causal"], context.wanted)
        if context.bounds is not None:
            return document_attention(query, key, value, context.bounds, window=self.window, **settings)
        if self.window is None:
            return attention(query, key, value, mask=mask, bias=bias, **settings)
        bias = None if bias is None else bias[..., bias.shape[-1] - key.shape[-2] :]
        if context.gaps is not None and mask is not None:
            mask = mask[..., mask.shape[-1] - key.shape[-2] :]
        return windowed_attention(query, key, value, self.window, mask=mask, bias=bias, **settings)

    @property
    def adds(self) -> bool:  # type: ignore[override]
        """Whether the residual connection is added within; a subclass may do more to what comes out."""
        return type(self) is Attention

    @property
    @override
    def reads_packed(self) -> bool:
        return self.convolution is None

    @property
    @override
    def memory_limit(self) -> int | None:
        return self.window if self.causal else None

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether the outputs at some positions can be computed without the others.

        A window is computed in blocks of neighbouring queries, and a convolution mixes neighbouring queries.
        """
        return self.window is None and self.convolution is None

    def start(self, rows: int, like: Tensor) -> State:
        """Empty keys and values."""
        empty = tuple(like.new_zeros(rows, self.heads, 0, width) for width in self.widths)
        return empty if self.convolution is None else (*empty, self.convolution.start(rows, like))

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """(C, K) the taps of each channel of queries, keys and values, None without a convolution."""
        return None if self.convolution is None else self.convolution.taps

    def offsets(self) -> list[int]:
        """Distance of each of these taps from the output, in tokens; negative before it."""
        return [] if self.convolution is None else self.convolution.offsets()

    def _parted(self, state: State) -> tuple[tuple[Tensor, Tensor] | None, Tensor | None]:
        """The earlier keys and values, and the inputs to the left of the convolution."""
        if state is None:
            return None, None
        key, value, *left = cast(tuple[Tensor, ...], state)
        return (key, value), left[0] if left else None

    @override
    def flops_per_token(self, length: int) -> int:
        attended = seen_pairs(length, self.window, self.causal) / max(1, length)
        maps = self.query_key_value.weight.numel() + self.output.weight.numel()
        maps += 0 if self.gate is None else self.gate.weight.numel()
        taps = 0 if self.convolution is None else self.convolution.flops_per_token()
        return round(2 * maps + taps + attended * self.flops_per_pair())

    def flops_per_pair(self) -> int:
        """Floating-point operations of one token's attending to one more: a score, and a summand of the average."""
        return 2 * self.heads * sum(self.widths)

    def reach(self) -> tuple[float, float]:
        """The whole row on both sides, or the window widened by the taps; causal: only the tokens before."""
        if self.window is None:
            return float("inf"), 0 if self.causal else float("inf")
        left, right = super().reach()
        return self.window + left, (0 if self.causal else self.window) + right
