"""A linear layer."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16, stays_in_bfloat16
from bakeoff.ops.cpu.linear import Linear, multiplies_by_onednn
from bakeoff.ops.cpu.transposed_product import multiplies_transposed


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b of (..., I) states x, (..., O).

    While a model is trained in bfloat16 on a CPU, the bias is added within the product, and the gradients of weight and
    bias are made together, by a kernel of C, or by one call of oneDNN's, from both operands as they lie.

    Args:
        x: (..., I).
        weight: (O, I).
        bias: (O,), or None.
    """
    if not torch.is_grad_enabled() or not stays_in_bfloat16(x) or not autocast_to_bfloat16(x):
        return F.linear(x, weight, bias)
    if not multiplies_by_onednn() or (bias is None and not multiplies_transposed(x, len(weight))):
        return F.linear(x, weight, bias)
    y: Tensor = Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return y
