"""The first layer's values in the layers behind it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.models.context import Context, Place
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.part import Part

INITIAL_SHARE = 0.5
"""Of the first layer's values, in modded-nanogpt; half and half is what Zhou et al. have without learning it."""


class ValueResidual(nn.Module):
    """v_l <- (1 - a_l) v_l + a_l v_1, where v_l are the values of layer l and a_l is a learned number.

    Zhou et al. 2024 (arXiv:2410.17897), in the form of KellerJordan/modded-nanogpt. The stack owns these numbers, so
    that layers which share all their parts (ALBERT) can still differ in them.
    """

    def __init__(self, layers: Sequence[int]) -> None:
        """Between the layers of these indices, the first of which gives its values."""
        super().__init__()
        self.first, *others = layers
        self.shares = nn.ParameterDict(
            {str(layer): nn.Parameter(torch.full((1,), INITIAL_SHARE)) for layer in others}  # a_l
        )

    def told(self, layer: int, mixer: Part, x: Tensor, context: Context) -> Context:
        """What a layer is told, from what the one before it was told.

        Args:
            layer: its index.
            mixer: its first part.
            x: (B, T, D) what comes into it.
            context: what the layer before it was told, or of the first the whole stack.
        """
        if layer == self.first:
            return context._replace(values=mixer.values(x))
        return context._replace(value_share=self.shares.get(str(layer), None))

    def share_from(self, layer: int) -> int:
        """The layer whose share a layer starts from that starts from this one; the first has none of its own."""
        return min(int(other) for other in self.shares if int(other) >= layer)


def value_residual(mixers: Sequence[object], places: Sequence[Place]) -> ValueResidual | None:
    """The connections of a stack with a mixer at each place, None where none of them asks for it.

    Raises:
        UserError: one alone does, or their values have different shapes.
    """
    asking = [
        (layer, mixer)
        for layer, mixer in enumerate(mixers)
        if isinstance(mixer, AttentionConfig) and mixer.value_residual
    ]
    if not asking:
        return None
    if len(asking) == 1:
        raise UserError("mixer.value_residual: one layer alone has it, and needs another's values; leave it out")
    if len({(mixer.heads, mixer.widths(places[layer]).value) for layer, mixer in asking}) > 1:
        raise UserError("mixer.value_residual: give all layers that have it the same heads and value_width")
    return ValueResidual([layer for layer, _ in asking])
