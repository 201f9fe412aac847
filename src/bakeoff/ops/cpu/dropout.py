"""Masks of dropout that are cheap to draw on a CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import run

STEPS = 1 << 16  # the rate is rounded to a multiple of 1 / STEPS, and the scale follows the rounded rate

BLOCK = 32
"""Elements whose bits the kernel draws at once."""

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types of integers by their number of bytes."""


def threshold_of(rate: float) -> int:
    """The rate in steps, not 0 and not 1."""
    return min(max(round(rate * STEPS), 1), STEPS - 1)


def drawn_seed() -> int:
    """A seed from torch's default generator, so that restoring torch's state gives the same masks."""
    return int(torch.randint(1 << 62, ()))


class Dropout(torch.autograd.Function):
    """Dropout of a tensor of bfloat16 on a CPU by a kernel (`kernels/dropout.c`).

    The mask is a function of a seed and an element's number, and is made again for the gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        """The states, of any shape, at a rate in (0, 1)."""
        ctx.mask = drawn_seed(), threshold_of(rate)
        return _masked(x, *ctx.mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        """The gradient, masked alike."""
        return _masked(upstream[0], *ctx.mask), None


def _masked(x: Tensor, seed: int, threshold: int) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    run("dropout", -(-x.numel() // BLOCK), BLOCK, x, y, x.numel(), seed, threshold)
    return y


def drawn_mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x; also under the compiler."""
    x = x.detach()
    opaque = torch.compiler.is_compiling() or type(x) is not Tensor
    return (_opaque_mask if opaque else _mask)(x, rate)


def _mask(x: Tensor, rate: float) -> Tensor:
    """A mask of 0, at this rate, and else 1 / (1 - rate), shaped and typed as x."""
    threshold = threshold_of(rate)
    generator = np.random.SFC64(drawn_seed())
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
