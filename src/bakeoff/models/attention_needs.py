"""What the attention of a stack needs to know of its rows: a mask, or only where their documents begin."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.ops.document_attention import products_on, runs_on
from bakeoff.row import Row
from bakeoff.spans import bounds_of_padded, bounds_of_rows


class AttentionNeeds(NamedTuple):
    """Facts about the mixers of a stack's layers."""

    attends: bool
    """Some layer attends."""
    windows: bool
    """Some layer attends within a window."""
    in_training: str | None
    """The reason why a layer needs a mask in training; None: bounds of documents are enough for all of them."""
    outside: str | None
    """The reason outside of training."""

    @staticmethod
    def of(mixers: Sequence[MixerBaseConfig], contexts: Sequence[BuildContext]) -> "AttentionNeeds":
        """The needs of the mixers of a stack's layers, in their places."""
        placed = list(zip(mixers, contexts, strict=True))
        reasons = ([mixer.needs_mask(context, training) for mixer, context in placed] for training in (True, False))
        return AttentionNeeds(
            any(mixer.attends for mixer in mixers),
            any(mixer.attention_window is not None for mixer in mixers),
            *(next((reason for reason in each if reason is not None), None) for each in reasons),
        )

    def mask_reason(self, training: bool) -> str | None:
        """The reason why a layer needs a mask, in training or outside of it."""
        return self.in_training if training else self.outside

    def bounds(self, row: Row[Tensor], model: nn.Module) -> Tensor | None:
        """`Context.bounds` of rows; None: there is nothing to attend, or they are attended whole or by a mask.

        Args:
            row: rows that stand by themselves.
            model: what has the layers.
        """
        whole = row.owners is None
        if not self.attends or (whole and not self.windows) or self.mask_reason(model.training) is not None:
            return None
        if row.queries is not None or row.prefix is not None or row.wanted is not None:
            return None
        device, (rows, length) = row.ids.device, row.ids.shape
        products = products_on(device, next(model.parameters()).dtype)
        if not runs_on(device, products, self.windows):
            return None
        if row.documents is not None:  # without spans the device would have to be asked, and waited for
            return None if row.spans is None else row.spans.bounds(device)
        return bounds_of_rows(rows, length, device) if row.padding_mask is None else bounds_of_padded(row.padding_mask)
