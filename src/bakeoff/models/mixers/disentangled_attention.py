"""Attention by content and by distance in both directions, from one table of distances (DeBERTa, LTG-BERT)."""

import math
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.attention_heads import AttentionHeadsConfig, Gate
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part, State
from bakeoff.ops.attention import attention
from bakeoff.ops.attention_heads import split_heads
from bakeoff.ops.dropout import dropout


class DisentangledAttentionConfig(AttentionHeadsConfig, MixerBaseConfig):
    """Disentangled attention (He et al. 2021, arXiv:2006.03654, section 3.1) as in LTG-BERT (arXiv:2303.09859)."""

    kind: Literal["disentangled_attention"] = "disentangled_attention"
    """The mixer's name."""
    buckets: int = Field(default=32, ge=4)
    """Number of buckets of the distances to either side, distance 0 being counted on both: half of them hold one
    distance each, the others grow with its logarithm.
    """
    distance: int = Field(default=512, gt=1)
    """Distance from which on all distances are in the last bucket."""
    distance_slices: Literal["map", "heads"] = "map"
    """How the projected vectors of distances are cut into queries and keys. map: the map's first half are queries, as
    for tokens, so that a head's distances are projected by the rows that project its tokens (DeBERTa's equation; the
    code of LTG-BERT in babylm/, of GPT-BERT). heads: each head has 2 d_k successive outputs of the map, half of them
    queries (the code of LTG-BERT in training/, and the models of its paper).
    """
    output_norm: bool = False
    """A norm with a scale and a shift after the output layer, before dropout and the residual connection (NormFormer:
    Shleifer et al. 2021, arXiv:2110.09456; LTG-BERT).
    """
    gate: Gate = "none"
    """The factor of the heads' output, as in `attention`: none, or gelu of a further linear layer of the input
    (GPT-BERT: Charpentier and Samuel 2024, arXiv:2410.24159).
    """
    inner_norm: bool = False
    """A norm of the heads' output, after the gate, in front of the output layer (GPT-BERT's code)."""
    attends: ClassVar[bool] = True
    hides_ahead: ClassVar[bool] = True

    @property
    def shares_distance_vectors(self) -> bool:
        """True: every layer with this mixer reads the stack's vectors of distances."""
        return True

    @property
    def forgets(self) -> bool:
        """False: every token that is seen counts for ever."""
        return False

    @override
    def build(self, context: BuildContext) -> "DisentangledAttention":
        return DisentangledAttention(self, context)


class DisentangledAttention(Part):
    """softmax((q_i k_j + q_i K_d(i,j) + k_j Q_d(i,j)) / sqrt(3 d_k)) V, with an output projection.

    K_d and Q_d are this layer's keys and queries of the stack's vector (`context.distances`) for bucket d(i, j) of the
    distance i - j, cut as `distance_slices` says; without `scaled` the root is left out. With a `gate` and an inner
    norm, the output layer reads norm(mixed * gelu(W_G x)).

    Shapes: B batch, T length, S keys, D width, H heads, d_k and d_v the widths of a head's keys and values, N buckets.
    """

    skips_padding = True

    def __init__(self, config: DisentangledAttentionConfig, context: BuildContext) -> None:
        super().__init__()
        self.heads, self.causal = config.heads, context.causal
        self.widths = config.widths(context)
        self.buckets, self.farthest = config.buckets, config.distance
        self.cut_by_head = config.distance_slices == "heads"
        self.rate = config.rate(context)
        self.scale = (3 * self.widths.key) ** -0.5 if config.scaled else 1.0
        self.query_key = Linear(context.width, 2 * self.heads * self.widths.key, bias=context.bias)
        self.value = Linear(context.width, self.heads * self.widths.value, bias=context.bias)
        inner = self.heads * self.widths.value
        self.gate = None if config.gate == "none" else Linear(context.width, inner, bias=context.bias)
        self.inner_norm = context.norm(inner) if config.inner_norm else nn.Identity()
        self.output = Linear(inner, context.width, bias=context.bias)
        self.norm = context.norm(affine=True) if config.output_norm else nn.Identity()

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the keys and values of all tokens so far."""
        query, key = split_heads(self.query_key(x), self.heads, (self.widths.key, self.widths.key))
        (value,) = split_heads(self.value(x), self.heads, (self.widths.value,))
        if state is not None:
            earlier_key, earlier_value = cast(tuple[Tensor, Tensor], state)
            key, value = torch.cat([earlier_key, key], dim=2), torch.cat([earlier_value, value], dim=2)
            state = (key, value)
        mixed = attention(
            query,
            key,
            value,
            mask=context.attention_mask,
            bias=self._by_distance(query, key, context) * self.scale,
            causal=self.causal or context.row.behind,
            scale=self.scale,
            dropout=self.rate if self.training else 0.0,
        )
        mixed = mixed.transpose(1, 2).flatten(-2)
        if self.gate is not None:
            mixed = mixed * F.gelu(self.gate(x))
        return self.norm(self.output(self.inner_norm(mixed))), state

    def _by_distance(self, query: Tensor, key: Tensor, context: Context) -> Tensor:
        """(B, H, T, S) scores of the content of either token with the distance between the two."""
        assert context.distances is not None
        vectors = dropout(context.distances, self.rate, self.training)[None]  # (1, N, D)
        far_query, far_key = self._far(self.query_key(vectors))
        length, keys = query.shape[2], key.shape[2]
        positions = torch.arange(keys, device=query.device)
        index = self.bucket(positions[keys - length :, None] - positions) + self.buckets - 1  # (T, S)
        to_key = (query @ far_key.transpose(-2, -1)).gather(-1, index.expand(*query.shape[:2], -1, -1))
        to_query = (key @ far_query.transpose(-2, -1)).gather(-1, index.T.expand(*key.shape[:2], -1, -1))
        return to_key + to_query.transpose(-2, -1)

    def _far(self, projected: Tensor) -> tuple[Tensor, ...]:
        """(1, H, N, d_k) queries and keys of the distances, from their (1, N, 2 H d_k) projections."""
        width = self.widths.key
        if self.cut_by_head:
            far_query, far_key = projected.unflatten(-1, (self.heads, 2 * width)).transpose(1, 2).chunk(2, dim=-1)
            return far_query, far_key
        return split_heads(projected, self.heads, (width, width))

    def bucket(self, distance: Tensor) -> Tensor:
        """The bucket of each distance, from 1 - B to B - 1: the distance up to B / 2, then its logarithm, rounded up.

        As in the code of DeBERTa and LTG-BERT: sign(d) (ceil(ln(|d| / m) / ln((F - 1) / m) (m - 1)) + m), m = B // 2,
        where F is the distance from which on all distances share a bucket.
        """
        middle = self.buckets // 2
        last = max(middle + 1, self.farthest - 1)
        share = torch.log(distance.abs().clamp(middle, last) / middle) / math.log(last / middle)
        far = (torch.ceil(share * (middle - 1)).long() + middle).clamp(max=2 * middle - 1)  # for what is rounded up
        return torch.where(distance.abs() <= middle, distance, far * distance.sign())

    def start(self, rows: int, like: Tensor) -> State:
        """Empty keys and values."""
        return tuple(like.new_zeros(rows, self.heads, 0, width) for width in self.widths)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens.

        The keys and queries of the distances' vectors are made once a batch, and not counted.
        """
        attended = (length + 1) / 2 if self.causal else length
        linears = (self.query_key, self.value, self.gate, self.output)
        maps = sum(linear.weight.numel() for linear in linears if linear is not None)
        by_distance = 2 * self.heads * self.widths.key * (2 * self.buckets - 1)  # of its query, and of its key
        return round(2 * (maps + by_distance) + attended * self.flops_per_pair())

    def flops_per_pair(self) -> int:
        """Floating-point operations of one token's attending to one more: a score, and a summand of the average."""
        return 2 * self.heads * sum(self.widths)

    def reach(self) -> tuple[float, float]:
        """The whole row on both sides; causal: all tokens before."""
        return float("inf"), 0 if self.causal else float("inf")
