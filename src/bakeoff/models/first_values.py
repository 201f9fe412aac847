"""The values of a stack's first attention, on their way to those of its later layers."""

from torch import Tensor

from bakeoff.models.packing import Packing
from bakeoff.ops.mixed_values import given_values, mixed_values


class FirstValues:
    """What one pass through a stack hands from its first attention with `value_residual` to the later ones."""

    def __init__(self) -> None:
        self.values: Tensor | None = None  # (B, T, H d_v), or (1, N, H d_v) where they are packed
        self.packing: Packing | None = None

    def mixed(self, projected: Tensor, channels: int, share: Tensor | None, packing: Packing | None) -> Tensor:
        """The projection of a layer with its mixed values.

        Args:
            projected: (B, T, C) queries, keys and values, or (1, N, C) where they are packed.
            channels: H d_v.
            share: (1,) a_l of `ValueResidual`; None in the first layer, whose values are kept as they are.
            packing: the layout of packed rows, as in `Context`.
        """
        if share is None:
            (projected, self.values), self.packing = given_values(projected, channels), packing
            return projected
        assert self.values is not None
        values = self.values
        if packing is not None and self.packing is None:
            values = packing.packed(values)
        elif packing is None and self.packing is not None:
            values = self.packing.spread(values)
        return mixed_values(projected, values, share)
