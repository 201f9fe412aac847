"""Dropout of elements and of channels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.cpu.dropout import Dropout, drawn_mask


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Zero elements independently with this rate and scale the others by 1 / (1 - rate) (Srivastava et al. 2014).

    torch draws the mask of a CPU tensor one 32-bit number at a time in one thread, a fifth of a training step. Here one
    64-bit number serves four elements; the numbers come from a generator that one draw of torch's default generator
    seeds, so that restoring torch's state gives the same masks; in bfloat16 a kernel makes them on the way, and again
    for the gradient. On other devices it is torch's dropout.

    Args:
        x: any shape.
        rate: probability of zero, in [0, 1).
        training: if False, x is returned unchanged.
    """
    if not training or rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    if runs_kernels(x):
        dropped: Tensor = Dropout.apply(x, rate)  # type: ignore[no-untyped-call]
        return dropped
    return x * drawn_mask(x, rate)


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
    return x * drawn_mask(x[:, :1], rate)
