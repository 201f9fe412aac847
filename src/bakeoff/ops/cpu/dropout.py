"""Masks of dropout that are cheap to draw on a CPU."""

import numpy as np
import torch
from torch import Tensor

STEPS = 1 << 16  # the rate is rounded to a multiple of 1 / STEPS, and the scale follows the rounded rate


def drawn_mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x; also under the compiler."""
    x = x.detach()
    opaque = torch.compiler.is_compiling() or type(x) is not Tensor
    return (_opaque_mask if opaque else _mask)(x, rate)


def _mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x."""
    threshold = min(max(round(rate * STEPS), 1), STEPS - 1)
    generator = np.random.SFC64(int(torch.randint(1 << 62, ())))
    drawn = torch.from_numpy(generator.random_raw(-(-x.numel() // 4)).view(np.int16))[: x.numel()]
    kept = (drawn >= threshold - STEPS // 2).to(x.dtype)  # int16 runs from -STEPS / 2
    return kept.mul_(STEPS / (STEPS - threshold)).view(x.shape)


@torch.library.custom_op("bakeoff::dropout_mask", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def _opaque_mask(x: Tensor, rate: float) -> Tensor:
    """The mask as one operation that the compiler does not look into, and does not repeat for the gradient.

    The compiler may merge two masks of one tensor into one; layers draw no two masks of a tensor.
    """
    return _mask(x, rate)


@_opaque_mask.register_fake
def _(x: Tensor, rate: float) -> Tensor:
    return x.new_empty(x.shape)
