"""The share of the first layer's values in those of later layers."""

from collections.abc import Sequence

import torch
from torch import nn

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.first_values import FirstValues
from bakeoff.models.mixers.attention import AttentionConfig

INITIAL_SHARE = 0.5
"""Of the first layer's values in modded-nanogpt; Zhou et al. have the same where it is not learned."""


class ValueResidual(nn.Module):
    """v_l <- (1 - a_l) v_l + a_l v_1, where v_l are the values of layer l and a_l is a learned number.

    Zhou et al. 2024 (arXiv:2410.17897), learned as in KellerJordan/modded-nanogpt. The stack owns the numbers, so that
    layers which share all their parts (ALBERT) can still have different ones.
    """

    def __init__(self, layers: Sequence[int]) -> None:
        """The connections between the layers of these indices; the first of them gives its values."""
        super().__init__()
        self.layers = tuple(layers)
        self.shares = nn.ParameterDict(
            {str(layer): nn.Parameter(torch.full((1,), INITIAL_SHARE)) for layer in self.layers[1:]}  # a_l
        )

    def contexts(self, context: Context, layers: int) -> list[Context]:
        """The context of each layer in one pass through a stack of so many layers, from that of the whole stack."""
        first, contexts = FirstValues(), [context] * layers
        for layer in self.layers:
            share = self.shares[str(layer)] if layer != self.layers[0] else None
            contexts[layer] = context._replace(first_values=first, value_share=share)
        return contexts

    def share_from(self, layer: int) -> int:
        """The layer with whose share one begins that begins as this layer; the first has none."""
        return next(other for other in self.layers[1:] if other >= layer)


def value_residual(mixers: Sequence[object], contexts: Sequence[BuildContext]) -> ValueResidual | None:
    """The connections of a stack with these mixers in these contexts, None where none of them has `value_residual`.

    Raises:
        UserError: one alone has it, or their values have different shapes.
    """
    connected = [
        (layer, mixer)
        for layer, mixer in enumerate(mixers)
        if isinstance(mixer, AttentionConfig) and mixer.value_residual
    ]
    if not connected:
        return None
    if len(connected) == 1:
        raise UserError("mixer.value_residual: one layer alone has it, and needs another's values; leave it out")
    if len({mixer.heads * mixer.widths(contexts[layer]).value for layer, mixer in connected}) > 1:
        raise UserError("mixer.value_residual: give all layers that have it values of one width (heads x value_width)")
    return ValueResidual([layer for layer, _ in connected])
