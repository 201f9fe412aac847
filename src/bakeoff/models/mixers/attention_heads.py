"""The common part of all kinds of attention: heads, their widths, and the projections cut into them."""

from typing import ClassVar, Literal, NamedTuple

from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext
from bakeoff.ops.document_attention import WIDEST_HEAD, WIDTHS
from bakeoff.ops.head_norm import head_norm


class HeadWidths(NamedTuple):
    """The widths of the heads' vectors."""

    key: int
    """d_k, the width of one head's queries and keys."""
    value: int
    """d_v, the width of one head's values."""


class AttentionHeadsConfig(Config):
    """The common fields of attention to the row itself and of attention to a source."""

    scales_with_width: ClassVar = frozenset({"heads", "key_width", "value_width"})

    heads: int = Field(gt=0)
    """H, the number of heads; must divide the width where a head's own widths are not given."""
    key_width: int | None = Field(default=None, gt=0)
    """d_k, the width of a head's queries and keys; D / H where absent (Vaswani et al. 2017, table 3 B; T5-3B, 11B)."""
    value_width: int | None = Field(default=None, gt=0)
    """d_v, the width of a head's values; D / H where absent."""
    scaled: bool = True
    """Divide the scores by the root of a head's width; T5 does not."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the attention weights; the model's dropout where absent."""
    stands_at: ClassVar[str] = "mixer"
    """The block's key that holds this config."""

    @property
    def head_count(self) -> int | None:
        """H, the number of heads."""
        return self.heads

    def widths(self, context: BuildContext) -> HeadWidths:
        """The widths of one head in a build context.

        Raises:
            UserError: the heads do not divide the width, and the widths of a head are not both given.
        """
        if (self.key_width is None or self.value_width is None) and context.width % self.heads:
            raise UserError(
                f"{self.stands_at}.heads: {self.heads} heads do not divide the width {context.width}; give another "
                "number, or key_width and value_width"
            )
        share = context.width // self.heads
        return HeadWidths(self.key_width or share, self.value_width or share)

    def rate(self, context: BuildContext) -> float:
        """The dropout rate of the attention weights in that build context."""
        return context.dropout if self.dropout is None else self.dropout


HEADS = "heads of"
"""How a reason begins that is about the widths of heads."""


def unfit_heads(widths: HeadWidths) -> str | None:
    """The widths of heads that FlashAttention does not take, in words; None: it takes them."""
    fits = widths.key == widths.value <= WIDEST_HEAD and widths.key % WIDTHS == 0
    if fits:
        return None
    return f"{HEADS} {widths.key} channels" + ("" if widths.key == widths.value else f" and {widths.value}")


Gate = Literal["none", "gelu"]
"""The factor of the heads' output: none, or gelu of a further linear layer of the input."""


class HeadNorm(nn.RMSNorm):
    """g x / sqrt(mean_i x_i^2 + epsilon) over the channels of one head, with one gain a channel for all heads.

    As in Qwen3, it keeps the scores of attention from growing with the weights (Henry et al. 2020, arXiv:2010.04245;
    Dehghani et al. 2023, arXiv:2302.05442, where it is a layer norm).
    """

    eps: float

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, T, d) to (B, H, T, d), in the gain's precision, whatever the precision of x."""
        return head_norm(x, self.weight, self.eps)
