"""The choice of operations that stay in bfloat16 on a CPU."""

import torch
from torch import Tensor


def stays_in_bfloat16(x: Tensor) -> bool:
    """Whether x is a tensor of bfloat16 on a CPU, outside of what is compiled, exported or counted on stand-ins.

    For such tensors some operations have a form of their own, which reads and writes bfloat16 and sums in float32.
    """
    return (
        type(x) is Tensor and x.device.type == "cpu" and x.dtype == torch.bfloat16 and not torch.compiler.is_compiling()
    )


def autocast_to_bfloat16(x: Tensor) -> bool:
    """Whether products of x are made in bfloat16 on a CPU by autocast, whatever the type of x; see above."""
    if type(x) is not Tensor or x.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
