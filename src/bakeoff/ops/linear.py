"""A linear layer."""

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16, stays_in_bfloat16
from bakeoff.ops.cpu.linear import Linear, multiplies_by_onednn


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b of (..., I) states x, (..., O).

    While a model is trained in bfloat16 on a CPU, the bias is added within the product, and the gradients of weight and
    bias come from one call of oneDNN's, which reads both operands as they lie.

    Args:
        x: (..., I).
        weight: (O, I).
        bias: (O,), or None.
    """
    if bias is None or not torch.is_grad_enabled() or not stays_in_bfloat16(x) or not autocast_to_bfloat16(x):
        return F.linear(x, weight, bias)
    if not multiplies_by_onednn():
        return F.linear(x, weight, bias)
    y: Tensor = Linear.apply(x, weight.bfloat16(), bias.bfloat16())  # type: ignore[no-untyped-call]
    return y
