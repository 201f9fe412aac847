"""What the attention of a stack needs to know of its rows and sources: a mask, or only where documents begin."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.cross_attention import CrossAttentionConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.ops.document_attention import Demands, products_on, why_not
from bakeoff.row import Row
from bakeoff.spans import bounds_of_padded, bounds_of_rows, bounds_of_source


class AttentionNeeds(NamedTuple):
    """Facts about the mixers of a stack's layers."""

    attends: bool
    """Some layer attends."""
    demands: Demands
    """What the layers demand of a kernel in training."""
    mask_reason: str | None
    """The reason why a layer needs a mask; None: bounds of documents are enough for all of them."""
    source: Demands | None = None
    """What attention to the source demands of a kernel in training; None: there is none."""
    source_mask_reason: str | None = None
    """The reason why it needs the source's padding mask; None: bounds are enough."""

    @staticmethod
    def of(
        mixers: Sequence[MixerBaseConfig],
        contexts: Sequence[BuildContext],
        crosses: Sequence[CrossAttentionConfig | None],
    ) -> "AttentionNeeds":
        """The needs of the mixers of a stack's layers, in their places, and of their attention to the source."""
        placed = list(zip(mixers, contexts, strict=True))
        reasons = (mixer.needs_mask(context) for mixer, context in placed)
        demands = Demands(
            windows=any(mixer.attention_window is not None for mixer in mixers),
            dropout=any(mixer.attention_dropout(context) > 0 for mixer, context in placed),
            width=max((mixer.widest_head(context) for mixer, context in placed), default=0),
        )
        reason = next((each for each in reasons if each is not None), None)
        to_source = [(each, at) for each, at in zip(crosses, contexts, strict=True) if each is not None]
        source = Demands(
            windows=False,
            dropout=any(cross.rate(context) > 0 for cross, context in to_source),
            width=max((max(cross.widths(context)) for cross, context in to_source), default=0),
            source=True,
        )
        unfit = next((why for cross, context in to_source if (why := cross.needs_mask(context)) is not None), None)
        attends = any(mixer.attends for mixer in mixers)
        return AttentionNeeds(attends, demands, reason, source if to_source else None, unfit)

    def demands_in(self, training: bool) -> Demands:
        """What the layers demand of a kernel, in training or outside of it, where nothing is dropped out."""
        return _in(training, self.demands)


def _in(training: bool, demands: Demands) -> Demands:
    return demands if training else demands._replace(dropout=False)


def source_bounds(stack: nn.Module, row: Row[Tensor]) -> tuple[Tensor, Tensor] | None:
    """`Context.source_bounds` of rows that stand by themselves; None: sources are attended whole or by their mask."""
    needs: AttentionNeeds = stack.attention_needs  # type: ignore[assignment]
    if needs.source is None or needs.source_mask_reason is not None or row.wanted is not None:
        return None
    if row.source is None or row.source.padding_mask is None:
        return None
    products = products_on(row.ids.device, next(stack.parameters()).dtype)
    if why_not(row.ids.device, products, _in(stack.training, needs.source)) is not None:
        return None
    return bounds_of_source(row.source.padding_mask, row.ids.shape[1])


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
    if row.queries is not None or row.prefix is not None or row.wanted is not None or row.behind:
        return None
    device, (rows, length) = row.ids.device, row.ids.shape
    products = products_on(device, next(stack.parameters()).dtype)
    if why_not(device, products, needs.demands_in(stack.training)) is not None:
        return None
    if row.documents is not None:  # without spans the device would have to be asked, and waited for
        return None if row.spans is None else row.spans.bounds(device)
    return bounds_of_rows(rows, length, device) if row.padding_mask is None else bounds_of_padded(row.padding_mask)
