"""A linear layer."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16, stays_in_bfloat16
from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.cpu.linear import Linear, multiplies_by_onednn
from bakeoff.ops.cpu.transposed_product import multiplies_transposed


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, beside: Tensor | None = None) -> Tensor:
    """W x + b of (..., I) states x, (..., O), or r + W x + b with a residual connection.

    While a model is trained in bfloat16 on a CPU, bias and residual are added within the product, and the gradients of
    weight and bias are made together, by a kernel of C, or by one call of oneDNN's, from both operands as they lie.

    Args:
        x: (..., I).
        weight: (O, I).
        bias: (O,), or None.
        beside: (..., O) r, or None.
    """
    if _by_onednn(x) and (bias is not None or multiplies_transposed(x, len(weight))):
        within = beside if beside is not None and beside.dtype == x.dtype and x.numel() else None
        y: Tensor = Linear.apply(x, weight, bias, within)  # type: ignore[no-untyped-call]
        return y if beside is None or within is not None else beside + y
    y = F.linear(x, weight, bias)
    return y if beside is None else beside + y


def adds_within_products(x: Tensor) -> bool:
    """Whether `linear` of states like x adds what is `beside` them more quickly than another operation would."""
    return _by_onednn(x) and runs_kernels(x)


def _by_onednn(x: Tensor) -> bool:
    """Whether x is states of a model that is trained in bfloat16 on a CPU for which oneDNN multiplies."""
    return torch.is_grad_enabled() and stays_in_bfloat16(x) and autocast_to_bfloat16(x) and multiplies_by_onednn()
