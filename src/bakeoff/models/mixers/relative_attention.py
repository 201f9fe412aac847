"""Attention by content, distance and segment, with a memory of earlier text and a second stream (XLNet)."""

from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.attention_heads import AttentionHeadsConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part, State
from bakeoff.ops.attention import attention
from bakeoff.ops.attention_heads import split_heads
from bakeoff.ops.dropout import dropout

UNSEEN = -1e30
"""Number added to the score of a token that may not be seen; not infinity, so that a row which sees nothing has even
weights.
"""
UNSEEN_ON_GPU = -(2.0**16)
"""The same on other devices than a CPU, whose fused kernels multiply and subtract in one rounding: where all scores so
far are -1e30, the largest of them less itself is not 0 but as large as 1e23, and its power infinity."""


class RelativeAttentionConfig(AttentionHeadsConfig, MixerBaseConfig):
    """Relative attention of Transformer-XL (Dai et al. 2019, arXiv:1901.02860, section 3.3) and XLNet."""

    kind: Literal["relative_attention"] = "relative_attention"
    """The mixer's name."""
    segments: bool = False
    """Add a term for whether two tokens are of the same segment (Yang et al. 2019, arXiv:1906.08237, section 2.5)."""
    memory: int | None = Field(default=None, ge=0)
    """Number of remembered tokens before a chunk; absent: all."""
    attends: ClassVar[bool] = True
    two_streams: ClassVar[bool] = True
    remembers_in_encoders: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        """Whether the memory is bounded: `memory` is a number."""
        return self.memory is not None

    @property
    def reads_segments(self) -> bool:
        """Whether scores depend on the segments of query and key: `segments`."""
        return self.segments

    @override
    def build(self, context: BuildContext) -> "RelativeAttention":
        return RelativeAttention(self, context)


class RelativeAttention(Part):
    """softmax(((Q + u) K^T + (Q + v) R^T + (Q + w) S^T) / sqrt(d_k)) V, with R by distance and S by segment.

    Shapes: B batch, T tokens, N queries of the second stream, M remembered tokens, D width, H heads, d_k and d_v the
    widths of a head's keys and values.

    The second stream is N further rows after those of the T tokens (`context.queries`). Keys and values come from the
    tokens alone, so that rows differ only in their queries, their positions and the tokens that they see.
    """

    skips_padding = True
    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: RelativeAttentionConfig, context: BuildContext) -> None:
        super().__init__()
        width, heads = context.width, config.heads
        self.heads = heads
        self.widths = config.widths(context)
        self.causal = context.causal
        self.memory = config.memory
        self.rate = config.rate(context)
        self.position_rate = context.dropout
        self.query = nn.Linear(width, heads * self.widths.key, bias=False)
        self.key_value = nn.Linear(width, heads * sum(self.widths), bias=False)
        self.distance = nn.Linear(width, heads * self.widths.key, bias=False)
        self.output = nn.Linear(heads * self.widths.value, width, bias=False)
        self.content_bias = _normal(heads, 1, self.widths.key)  # u
        self.distance_bias = _normal(heads, 1, self.widths.key)  # v
        if config.segments:
            self.segment_bias = _normal(heads, 1, self.widths.key)  # w
            self.segments = _normal(heads, 2, self.widths.key)  # the same one, another one
        self.has_segments = config.segments

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T + N, D) to (B, T + N, D); the state is the (B, M, D) inputs of the remembered tokens."""
        length = x.shape[1] - context.queries
        memory = cast(Tensor | None, state)
        remembered = 0 if memory is None else memory.shape[1]
        seen = x[:, :length] if memory is None else torch.cat([memory, x[:, :length]], dim=1)
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T + N, d_k)
        key, value = split_heads(self.key_value(seen), self.heads, self.widths)
        scale = query.shape[-1] ** -0.5
        bias = self._by_distance(query, context, length, remembered)
        if self.has_segments:
            bias = bias + self._by_segment(query, context, remembered)
        bias = bias * scale
        mask = self._mask(context, length, remembered, x.device)
        if mask is not None:
            bias = bias + torch.where(mask, 0.0, UNSEEN if x.device.type == "cpu" else UNSEEN_ON_GPU)
        rate = self.rate if self.training else 0.0
        mixed = attention(query + self.content_bias, key, value, bias=bias, scale=scale, dropout=rate)
        if memory is not None:
            last = remembered + (length if context.remembered is None else min(context.remembered, length))
            first = 0 if self.memory is None else max(0, last - self.memory)
            state = seen[:, first:last].detach()
        return self.output(mixed.transpose(1, 2).flatten(-2)), state

    def _by_distance(self, query: Tensor, context: Context, length: int, remembered: int) -> Tensor:
        """(B, H, T + N, M + T) scores of the distances, each row from its own position.

        Distances are those of the text: in a row that is read from the text's end, tokens that come earlier in the row
        come later in the text.
        """
        device = query.device
        keys = torch.arange(-remembered, length, device=device)
        positions = torch.arange(length, device=device)[None] if context.positions is None else context.positions
        distances = torch.arange(-(length - 1), length + remembered, device=device)  # of a query from a key
        vectors = self._vectors(distances, query.dtype)  # (H, d_k, M + 2 T - 1)
        if context.row.backwards is not None:
            turned = self._vectors(-distances, query.dtype)
            vectors = torch.where(context.row.backwards[:, None, None, None], turned, vectors)
        scores = (query + self.distance_bias) @ vectors  # (B, H, T + N, M + 2 T - 1)
        index = positions[:, :, None] - keys + length - 1  # (B or 1, T + N, M + T)
        return scores.gather(-1, index[:, None].expand(*scores.shape[:3], -1))

    def _vectors(self, distances: Tensor, dtype: torch.dtype) -> Tensor:
        """(H, d_k, n) R of n distances, for each head; the model's dropout acts on their waves, as on embeddings."""
        waves = dropout(sine_then_cosine(distances, self.distance.in_features), self.position_rate, self.training)
        vectors: Tensor = self.distance(waves.to(dtype)).unflatten(-1, (self.heads, -1)).permute(1, 2, 0)
        return vectors

    def _by_segment(self, query: Tensor, context: Context, remembered: int) -> Tensor:
        """(B, H, T + N, M + T) scores of being in one segment; remembered tokens count as segment 0."""
        scores = (query + self.segment_bias) @ self.segments.transpose(1, 2)  # (B, H, T + N, 2)
        if context.row.segments is None:
            return scores[..., :1]
        segments = context.row.segments
        key_segments = F.pad(segments[:, : segments.shape[1] - context.queries], (remembered, 0))
        other = (segments[:, :, None] != key_segments[:, None]).long()  # (B, T + N, M + T)
        return scores.gather(-1, other[:, None].expand(*scores.shape[:3], -1))

    def _mask(self, context: Context, length: int, remembered: int, device: torch.device) -> Tensor | None:
        """True where a row may see a token; remembered tokens can always be seen."""
        if context.attention_mask is not None:
            missing = remembered + length - context.attention_mask.shape[-1]
            mask = F.pad(context.attention_mask, (missing, 0), value=True)  # or what is not remembered any more, cut
            if context.gaps is None or self.memory is None or length == 1:
                return mask
            return mask & torch.ones(length, remembered + length, dtype=torch.bool, device=device).triu(
                remembered - self.memory
            )
        if not self.causal:
            return None
        before = torch.ones(length, remembered + length, dtype=torch.bool, device=device).tril(remembered)
        return before.triu(remembered - self.memory) if context.banded and self.memory is not None else before

    def start(self, rows: int, like: Tensor) -> State:
        """An empty memory."""
        return like.new_zeros(rows, 0, self.output.out_features)

    @property
    @override
    def memory_limit(self) -> int | None:
        return self.memory

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens, and a full memory."""
        remembered = (self.memory or 0) / length  # whose keys and values are made anew
        return round(self.flops_per_query(length) + 2 * self.key_value.weight.numel() * (1 + remembered))

    def flops_per_query(self, length: int) -> int:
        """Floating-point operations of one row of the second stream."""
        memory = self.memory or 0
        attended = memory + ((length + 1) / 2 if self.causal else length)
        maps = self.query.weight.numel() + self.output.weight.numel()
        distances = memory + 2 * length - 1  # whose projection is made once a batch, and not counted
        return round(2 * maps + 2 * self.heads * (attended * sum(self.widths) + distances * self.widths.key))

    def flops_per_pair(self) -> int:
        """Floating-point operations of one token's attending to one more: a score, and a summand of the average."""
        return 2 * self.heads * sum(self.widths)

    def reach(self) -> tuple[float, float]:
        """The whole row on both sides; causal: all tokens before."""
        return float("inf"), 0 if self.causal else float("inf")


def sine_then_cosine(positions: Tensor, width: int) -> Tensor:
    """(n, D) all sines, then all cosines, of position / 10000^(2 i / D), the layout of Transformer-XL."""
    rates = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width)
    angles = positions.float()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :width]


def _normal(*shape: int) -> nn.Parameter:
    """A parameter with normal initial weights of deviation 0.02, as all of XLNet's and Transformer-XL's are."""
    return nn.Parameter(nn.init.normal_(torch.empty(shape), std=0.02))
