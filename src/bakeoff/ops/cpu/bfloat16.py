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


def has_matrix_units() -> bool:
    """Whether this CPU has Intel's units for products of matrices of bfloat16 (AMX)."""
    return _capability("amx_bf16", "_is_amx_tile_supported")


def has_vector_products() -> bool:
    """Whether this CPU has vector instructions for products of bfloat16 (AVX512_BF16)."""
    return _capability("avx512_bf16", "_is_avx512_bf16_supported")


def _capability(name: str, before: str) -> bool:
    """A capability of this CPU, by the name that torch gives it, and by that of older versions' function."""
    if hasattr(torch.cpu, "get_capabilities"):
        return bool(torch.cpu.get_capabilities().get(name, False))
    return bool(getattr(torch.cpu, before)())
