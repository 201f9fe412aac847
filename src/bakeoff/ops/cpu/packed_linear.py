"""Linear layers that are no more trained, with weights laid out once as oneDNN multiplies by them on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bakeoff.ops.cpu.linear import multiplies_by_onednn


class PackedLinear:
    """W x + b in bfloat16, of (..., I) states of any type, (..., O).

    torch lays out a weight anew for each product, which takes longer than the product of few rows: of 32 rows 256 wide
    a packed layer takes half of the time, of 1,024 rows three quarters.

    Args:
        layer: the layer, whose weight and bias are bfloat16 and stay as they are.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self.weight, self.bias = layer.weight, layer.bias
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)

    def __call__(self, x: Tensor, beside: Tensor | None = None) -> Tensor:
        """The product, added to `beside`; where gradients are asked for, torch's, because oneDNN's has none."""
        y = self._product(x)
        return y if beside is None else beside + y

    def _product(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return F.linear(x.to(self.weight.dtype), self.weight, self.bias)
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.weight.dtype), self.packed, self.bias, "none", [], "")
        return y


def pack_linear_layers(module: nn.Module) -> None:
    """Make the linear layers in a module on a CPU, of bfloat16, multiply by packed weights.

    Nothing happens where oneDNN does not multiply bfloat16, or this version of torch cannot lay out weights.
    """
    if not (multiplies_by_onednn() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")):
        return
    for part in module.modules():
        if isinstance(part, nn.Linear) and part.weight.dtype == torch.bfloat16 and part.weight.device.type == "cpu":
            layer: Any = part  # an instance's `forward` stands before its class's
            layer.forward = PackedLinear(part)
