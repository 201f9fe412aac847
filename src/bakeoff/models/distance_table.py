"""The vectors of distances that all layers with disentangled attention share."""

import math
from collections.abc import Sequence

from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext
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
    found = [
        (mixer, context)
        for mixer, context in zip(mixers, contexts, strict=True)
        if isinstance(mixer, DisentangledAttentionConfig)
    ]
    if not found:
        return None
    if len({(mixer.buckets, mixer.distance, context.width) for mixer, context in found}) > 1:
        raise UserError(
            "mixer: layers with disentangled_attention share one table; give them the same buckets, distance and width"
        )
    return DistanceTable(*found[0])
