"""Muon's passes over gradients and weights on a CPU, where its iterations are made in bfloat16.

Shapes: N matrices, R rows, C columns; matrices of more dimensions have all but the first as one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import run


def directions(gradients: Sequence[Tensor], means: Sequence[Tensor], momentum: float) -> tuple[Tensor, Tensor]:
    """The directions g + momentum (b - g) of N matrices of one shape, with b <- momentum b + (1 - momentum) g.

    Args:
        gradients: N gradients g, float32.
        means: N means b, float32 and contiguous, which are updated.
        momentum: the decay rate of the means.

    Returns:
        (N, R, C) the directions in bfloat16, and (N, 1, 1) their lengths (Frobenius' norm) before they were rounded.
    """
    rows, columns = gradients[0].flatten(1).shape
    found = gradients[0].new_empty(len(gradients), rows, columns, dtype=torch.bfloat16)
    squares = gradients[0].new_empty(len(gradients), rows)
    for gradient, mean, direction, sums in zip(gradients, means, found, squares, strict=True):
        run("muon_directions", rows, columns, gradient.contiguous(), mean, direction, sums, columns, 1 - momentum)
    return found, squares.sum(1).sqrt_()[:, None, None]


def move(parameters: Sequence[Tensor], updates: Tensor, factor: float) -> None:
    """X <- x + factor * update, of N contiguous float32 matrices and (N, R, C) updates in bfloat16."""
    _, rows, columns = updates.shape
    for parameter, update in zip(parameters, updates.contiguous(), strict=True):
        run("muon_move", rows, columns, parameter, update, columns, factor)
