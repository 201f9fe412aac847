"""What all layers of a stack share about distances: T5's relative position bias, LTG-BERT's vectors of distances."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.disentangled_attention import DisentangledAttentionConfig


class DistanceTable(nn.Module):
    """norm(table): a vector for each bucket of distances; B buckets to either side, D width.

    It begins with a truncated normal distribution of deviation sqrt(2 / (5 D)), as all of LTG-BERT does.
    """

    def __init__(self, config: DisentangledAttentionConfig, context: BuildContext) -> None:
        super().__init__()
        self.table = nn.Embedding(2 * config.buckets - 1, context.width)
        self.norm = context.norm(affine=True)

    def initialise(self) -> None:
        """Draw the initial weights from the distribution that the class names."""
        deviation = math.sqrt(2 / (5 * self.table.embedding_dim))
        nn.init.trunc_normal_(self.table.weight, std=deviation, a=-2 * deviation, b=2 * deviation)

    def forward(self) -> Tensor:
        """(2 B - 1, D) vectors, from the farthest distance ahead to the farthest behind."""
        vectors: Tensor = self.norm(self.table.weight)
        return vectors


def distance_table(mixers: Sequence[object], contexts: Sequence[BuildContext]) -> DistanceTable | None:
    """The table of a stack with these mixers in these contexts; None where none of them is disentangled attention.

    Raises:
        UserError: the mixers do not agree on the table's shape.
    """
    layers = [
        (mixer, context)
        for mixer, context in zip(mixers, contexts, strict=True)
        if isinstance(mixer, DisentangledAttentionConfig)
    ]
    if not layers:
        return None
    if len({(mixer.buckets, mixer.distance, context.width) for mixer, context in layers}) > 1:
        raise UserError(
            "mixer: layers with disentangled_attention share one table; give them the same buckets, distance and width"
        )
    return DistanceTable(*layers[0])


class RelativeBias(nn.Module):
    """A learned number for each head and each bucket of distances, added to the attention's scores.

    Raffel et al. 2020 (arXiv:1910.10683, section 2.1) and its code: half of the buckets for exact small distances, the
    others logarithmically wider up to the largest; half of all for either direction where both can be seen.
    """

    def __init__(self, config: AttentionConfig, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(config.buckets, config.heads)
        self.farthest = config.distance
        self.one_sided = causal and not config.two_sided

    def forward(self, start: int, length: int) -> Tensor:
        """(1, H, T, S) for T queries from position `start` on, and the S = start + T keys up to the last of them."""
        device = self.table.weight.device
        queries = torch.arange(start, start + length, device=device)
        distance = torch.arange(start + length, device=device) - queries[:, None]  # (T, S) of key from query
        return cast(Tensor, self.table(self.bucket(distance)).permute(2, 0, 1)[None])

    def bucket(self, distance: Tensor) -> Tensor:
        """The bucket of each distance; distances to the left are negative."""
        buckets = self.table.num_embeddings
        if self.one_sided:
            offset, distance = torch.zeros_like(distance), (-distance).clamp(min=0)
        else:
            buckets //= 2
            offset, distance = (distance > 0) * buckets, distance.abs()
        exact = buckets // 2
        scaled = torch.log(distance.clamp(min=1) / exact) / math.log(self.farthest / exact) * (buckets - exact)
        return offset + torch.where(distance < exact, distance, (exact + scaled.long()).clamp(max=buckets - 1))


def relative_bias(mixers: Sequence[object], causal: bool) -> RelativeBias | None:
    """The bias of a stack with these mixers, None where none of them has T5's positions.

    Raises:
        UserError: the mixers do not agree on the bias's shape.
    """
    biased = [mixer for mixer in mixers if isinstance(mixer, AttentionConfig) and mixer.positions == "t5"]
    if not biased:
        return None
    if len({(mixer.heads, mixer.buckets, mixer.distance, mixer.two_sided) for mixer in biased}) > 1:
        raise UserError(
            "mixer.positions: layers with t5 share one bias; give them the same heads, buckets, distance and two_sided"
        )
    return RelativeBias(biased[0], causal)
