"""What the attention of a stack needs to know of its rows: a mask, or only where their documents begin."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.ops.document_attention import Demands, products_on, why_not
from bakeoff.row import Row
from bakeoff.spans import bounds_of_padded, bounds_of_rows


class AttentionNeeds(NamedTuple):
    """Facts about the mixers of a stack's layers."""

    attends: bool
    """Some layer attends."""
    demands: Demands
    """What the layers demand of a kernel in training."""
    mask_reason: str | None
    """The reason why a layer needs a mask; None: bounds of documents are enough for all of them."""

    @staticmethod
    def of(mixers: Sequence[MixerBaseConfig], contexts: Sequence[BuildContext]) -> "AttentionNeeds":
        """The needs of the mixers of a stack's layers, in their places."""
        placed = list(zip(mixers, contexts, strict=True))
        reasons = (mixer.needs_mask(context) for mixer, context in placed)
        demands = Demands(
            windows=any(mixer.attention_window is not None for mixer in mixers),
            dropout=any(mixer.attention_dropout(context) > 0 for mixer, context in placed),
            width=max((mixer.widest_head(context) for mixer, context in placed), default=0),
        )
        reason = next((each for each in reasons if each is not None), None)
        return AttentionNeeds(any(mixer.attends for mixer in mixers), demands, reason)

    def demands_in(self, training: bool) -> Demands:
        """What the layers demand of a kernel, in training or outside of it, where nothing is dropped out."""
        return self.demands if training else self.demands._replace(dropout=False)


def document_bounds(stack: nn.Module, row: Row[Tensor]) -> Tensor | None:
    """`Context.bounds` of rows; None: there is nothing to attend, or they are attended whole or by a mask.

    Args:
        stack: a stack, with its `attention_needs`.
        row: rows that stand by themselves.
    """
    needs: AttentionNeeds = stack.attention_needs  # type: ignore[assignment]
    whole = row.owners is None
    if not needs.attends or needs.mask_reason is not None or (whole and not needs.demands.windows):
        return None
    if row.queries is not None or row.prefix is not None or row.wanted is not None:
        return None
    device, (rows, length) = row.ids.device, row.ids.shape
    products = products_on(device, next(stack.parameters()).dtype)
    if why_not(device, products, needs.demands_in(stack.training)) is not None:
        return None
    if row.documents is not None:  # without spans the device would have to be asked, and waited for
        return None if row.spans is None else row.spans.bounds(device)
    return bounds_of_rows(rows, length, device) if row.padding_mask is None else bounds_of_padded(row.padding_mask)
