"""Dropout whose mask is cheap to draw on a CPU."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

STEPS = 1 << 16  # the rate is rounded to a multiple of 1 / STEPS, and the scale follows the rounded rate


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zero elements independently with this rate and scale the others by 1 / (1 - rate) (Srivastava et al. 2014).

    torch draws the mask of a CPU tensor one 32-bit number at a time in one thread, a fifth of a training step. Here one
    64-bit number serves four elements; the numbers come from a generator that one draw of torch's default generator
    seeds, so that restoring torch's state gives the same masks. On other devices it is torch's own dropout.

    Args:
        x: any shape.
        rate: probability of zero, in [0, 1).
        training: if False, x is returned unchanged.
    """
    if not training or rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    return x * _draw(x, rate)


def channel_dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zero whole channels of a row, and scale the others (spatial dropout: Tompson et al. 2015, arXiv:1411.4280).

    Args:
        x: (B, T, D); each of the B * D channels is zero at all T positions or at none.
        rate: probability of zero, in [0, 1).
        training: if False, x is returned unchanged.
    """
    if not training or rate == 0.0:
        return x
    if x.device.type != "cpu":
        return x * F.dropout(torch.ones_like(x[:, :1]), rate)
    return x * _draw(x[:, :1], rate)


def _draw(x: Tensor, rate: float) -> Tensor:
    """A mask shaped and typed as x, also under the compiler and for a fake tensor."""
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
