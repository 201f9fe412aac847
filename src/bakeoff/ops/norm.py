"""A norm with what stands before it: the residual connection that goes past it, or the sum that it norms."""

import torch
from torch import Tensor, nn

from bakeoff.ops.cpu.compiled_kernels import IN_MEMORY, runs_kernels
from bakeoff.ops.cpu.norm import WIDEST, Norm
from bakeoff.ops.dropout import dropout


def norm_beside(x: Tensor, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """States and their norm, both of which are used: their gradients come from one pass in bfloat16 on a CPU.

    Args:
        x: (..., D).
        norm: a layer norm, a root-mean-square norm, or another module, over the last dimension.

    Returns:
        (..., D) twice.
    """
    return _by_kernel(x, None, 0.0, norm) if _takes(x, norm) else (x, norm(x))


def norm_of_sum(x: Tensor, branch: Tensor, rate: float, training: bool, norm: nn.Module) -> Tensor:
    """norm(x + dropout(branch)), one pass each way in bfloat16 on a CPU.

    Args:
        x: (..., D).
        branch: (..., D).
        rate: the dropout's rate.
        training: whether there is dropout.
        norm: see `norm_beside`.

    Returns:
        (..., D).
    """
    if _takes(x, norm) and branch.dtype == x.dtype and branch.shape == x.shape:
        return _by_kernel(x, branch, rate if training else 0.0, norm)[1]
    return norm(x + dropout(branch, rate, training))  # type: ignore[no-any-return]


def _takes(x: Tensor, norm: nn.Module) -> bool:
    """Whether a kernel can do the norm's work: weights in float32 and in memory, and nobody listens to the module."""
    if not isinstance(norm, nn.LayerNorm | nn.RMSNorm) or norm.normalized_shape != (x.shape[-1],):
        return False
    whole = all(type(each) in IN_MEMORY and each.dtype == torch.float32 for each in norm.parameters())
    heard = norm._forward_hooks or norm._forward_pre_hooks or norm._backward_hooks or norm._backward_pre_hooks
    return whole and not heard and x.shape[-1] <= WIDEST and x.numel() > 0 and runs_kernels(x)


def _by_kernel(x: Tensor, branch: Tensor | None, rate: float, norm: nn.Module) -> tuple[Tensor, Tensor]:
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    made: tuple[Tensor, Tensor] = Norm.apply(  # type: ignore[no-untyped-call]
        x, branch, rate, norm.weight, bias, norm.eps, isinstance(norm, nn.LayerNorm)
    )
    return made
