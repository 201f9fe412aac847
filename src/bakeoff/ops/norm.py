"""A norm with what stands before it: the residual connection that goes past it, or the sum that it norms."""

import torch
from torch import Tensor, nn

from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16
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
    return _by_kernel(x, None, 0.0, norm)[:2] if _takes(x, norm) else (x, norm(x))


def norm_of_sum(x: Tensor, branch: Tensor, rate: float, training: bool, norm: nn.Module) -> Tensor:
    """norm(x + dropout(branch)), one pass each way in bfloat16 on a CPU, also where it is used as a `residual` besides.

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
        return _with_second(_by_kernel(x, branch, rate if training else 0.0, norm))
    return norm(x + dropout(branch, rate, training))  # type: ignore[no-any-return]


def norm_alone(x: Tensor, norm: nn.Module) -> Tensor:
    """The norm of x, which is used no more.

    Args:
        x: (..., D).
        norm: see `norm_beside`.

    Returns:
        (..., D).
    """
    if _takes(x, norm):
        return _with_second(_by_kernel(x, None, 0.0, norm))
    normed: Tensor = norm(x)
    return normed


def rounded(x: Tensor) -> Tensor:
    """States in bfloat16 already, where kernels train a model in it on a CPU; elsewhere x.

    Args:
        x: states of any shape.
    """
    if not (torch.is_grad_enabled() and autocast_to_bfloat16(x)):
        return x
    return x.bfloat16() if runs_kernels(x.new_empty(0, dtype=torch.bfloat16)) else x


def residual(x: Tensor) -> Tensor:
    """States as what goes past a function by a residual connection; the function has x itself.

    Of what `norm_of_sum` gives it is a second output of its kernel, with the same numbers: torch would sum the
    gradients of both ways in a pass of its own, the kernel does it as it reads them.

    Args:
        x: (..., D).

    Returns:
        (..., D).
    """
    again: Tensor = getattr(x, _AGAIN, x)
    return again


_AGAIN = "_again"
"""The attribute of a tensor with its second output."""


def _with_second(made: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    _, normed, again = made
    setattr(normed, _AGAIN, again)
    return normed


def _takes(x: Tensor, norm: nn.Module) -> bool:
    """Whether a kernel can do the norm's work: weights in float32 and in memory, and nobody listens to the module."""
    if not isinstance(norm, nn.LayerNorm | nn.RMSNorm) or norm.normalized_shape != (x.shape[-1],) or norm.eps is None:
        return False
    whole = all(type(each) in IN_MEMORY and each.dtype == torch.float32 for each in norm.parameters())
    heard = norm._forward_hooks or norm._forward_pre_hooks or norm._backward_hooks or norm._backward_pre_hooks
    return whole and not heard and x.shape[-1] <= WIDEST and x.numel() > 0 and runs_kernels(x)


def _by_kernel(x: Tensor, branch: Tensor | None, rate: float, norm: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    made: tuple[Tensor, Tensor, Tensor] = Norm.apply(  # type: ignore[no-untyped-call]
        x, branch, rate, norm.weight, bias, norm.eps, isinstance(norm, nn.LayerNorm)
    )
    return made
