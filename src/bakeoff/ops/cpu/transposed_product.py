"""The product of a transposed matrix and another in bfloat16 on a CPU, by a kernel of C."""

import torch
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import Argument, multiplies_matrices, run

SIDE = 32
"""A number of which the kernel's counts of columns are multiples."""

COLUMNS = 256
"""Number of columns of the wider matrix that one thread does at once, `kernels/transposed_product.c`."""


def multiplies_transposed(one: Tensor, columns: int) -> bool:
    """Whether the kernel multiplies (N, A) `one`, transposed, with a matrix of so many columns."""
    fits = one.shape[-1] % SIDE == 0 and columns % SIDE == 0 and one.numel() > 0 and columns > 0
    return fits and multiplies_matrices(one)


def transposed_product(one: Tensor, other: Tensor, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """The product one^T other and the sums over the rows of `one`, times a factor, in float32 and not rounded.

    Args:
        one: (N, A) bfloat16.
        other: (N, C) bfloat16, where `multiplies_transposed(one, C)`.
        factor: of product and sums.

    Returns:
        (A, C) and (A,) float32.
    """
    one, other = one.contiguous(), other.contiguous()
    (rows, height), width = one.shape, other.shape[1]
    product, sums = (one.new_empty(shape, dtype=torch.float32) for shape in ((height, width), (height,)))
    items = -(-max(height, width) // COLUMNS)
    if height <= width:
        given: tuple[Argument, ...] = (one, other, rows, height, width, product, 0, sums, None)
    else:
        given = (other, one, rows, width, height, product, 1, None, sums)
    run("transposed_product", items, rows * COLUMNS, *given, factor)
    return product, sums
