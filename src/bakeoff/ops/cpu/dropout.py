"""Masks of dropout that are cheap to draw on a CPU."""

import numpy as np
import torch
from torch import Tensor

STEPS = 1 << 16  # the rate is rounded to a multiple of 1 / STEPS, and the scale follows the rounded rate

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types of integers by their number of bytes."""


def drawn_mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x; also under the compiler."""
    x = x.detach()
    opaque = torch.compiler.is_compiling() or type(x) is not Tensor
    return (_opaque_mask if opaque else _mask)(x, rate)


def _mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x."""
    threshold = min(max(round(rate * STEPS), 1), STEPS - 1)
    generator = np.random.SFC64(int(torch.randint(1 << 62, ())))
    drawn = generator.random_raw(-(-x.numel() // 4)).view(np.int16)[: x.numel()]
    kept = drawn >= np.int16(threshold - STEPS // 2)  # int16 runs from -STEPS / 2
    # The factor's bits times 0 or 1, in a third of the time that torch takes to compare, convert and multiply.
    factor = torch.tensor(STEPS / (STEPS - threshold), dtype=x.dtype).view(_INTEGERS[x.element_size()])
    return torch.from_numpy(np.multiply(kept, factor.numpy())).view(x.dtype).view(x.shape)


@torch.library.custom_op("bakeoff::dropout_mask", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def _opaque_mask(x: Tensor, rate: float) -> Tensor:
    """The mask as one operation that the compiler does not look into, and does not repeat for the gradient.

    The compiler may merge two masks of one tensor into one; layers draw no two masks of a tensor.
    """
    return _mask(x, rate)


@_opaque_mask.register_fake
def _(x: Tensor, rate: float) -> Tensor:
    return x.new_empty(x.shape)
