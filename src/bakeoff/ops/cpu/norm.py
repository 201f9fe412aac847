"""Norms in bfloat16 on a CPU in one pass each way, with the residual connection and the dropout around them."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import BLOCK, run
from bakeoff.ops.cpu.dropout import drawn_seed, threshold_of

WIDEST = 1 << 14
"""Largest width, of which the kernel keeps a row on its stack."""


class Norm(torch.autograd.Function):
    """s = x + dropout(branch), and norm(s) twice, of (..., D) states; without a branch s is x. See `bakeoff.ops.norm`.

    What uses the norm twice may take the one and the other: their gradients are summed where they are read.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        branch: Tensor | None,
        rate: float,
        weight: Tensor | None,
        bias: Tensor | None,
        epsilon: float,
        centred: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Weight and bias are (D,) float32; the norm subtracts the mean if it is `centred`."""
        width = x.shape[-1]
        x = x.contiguous()
        branch = None if branch is None else branch.contiguous()
        dropped = (drawn_seed(), threshold_of(rate)) if rate else (0, 0)
        normed = torch.empty_like(x)
        total = x if branch is None else torch.empty_like(x)
        written = None if branch is None else total
        rows = x.numel() // width
        moments = x.new_empty(rows, 2, dtype=torch.float32)  # of each row: its mean and its scale
        settings = (width, epsilon, int(centred), *dropped)
        run("norm", rows, width, x, branch, written, normed, moments, weight, bias, *settings)
        ctx.save_for_backward(total, moments, weight, bias)
        ctx.settings, ctx.branches = (width, int(centred), *dropped), branch is not None
        ctx.set_materialize_grads(False)
        return total, normed, normed.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of x, branch, weight and bias."""
        total, moments, weight, bias = ctx.saved_tensors
        beside, above, other = upstream
        if above is None:
            above, other = other, None
        if above is None:
            above = torch.zeros_like(total)
        width, drops = total.shape[-1], ctx.settings[-1] > 0
        rows = total.numel() // width
        blocks = -(-rows // BLOCK)
        of_total, of_both = torch.empty_like(total), total.new_empty(blocks, 2, width, dtype=torch.float32)
        of_branch = torch.empty_like(total) if drops else None
        other, beside = (None if each is None else each.contiguous() for each in (other, beside))
        run(
            "norm_gradient",
            blocks,
            BLOCK * width,
            rows,
            total,
            above.contiguous(),
            other,
            beside,
            of_total,
            of_branch,
            moments,
            of_both,
            weight,
            *ctx.settings,
        )
        of_weight, of_bias = of_both.sum(0)
        if ctx.branches and not drops:
            of_branch = of_total
        given = None if weight is None else of_weight, None if bias is None else of_bias
        return of_total, of_branch, None, *given, None, None
