"""The Gaussian error linear unit and its gate in bfloat16 on a CPU, in one pass each way."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import run

BLOCK = 64
"""Numbers that the kernel computes at once."""


class Gelu(torch.autograd.Function):
    """gelu(x), or gelu(x) gate, of equal shapes; see `bakeoff.ops.gelu`. It is made again for the gate's gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gate: Tensor | None, by_tanh: bool) -> Tensor:
        """Of any shape."""
        x, gate = x.contiguous(), None if gate is None else gate.contiguous()
        ctx.save_for_backward(x, gate)
        ctx.by_tanh = int(by_tanh)
        y = torch.empty_like(x)
        run("gelu", -(-x.numel() // BLOCK), BLOCK, x, gate, y, x.numel(), ctx.by_tanh)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of x and the gate."""
        x, gate = ctx.saved_tensors
        of_x, of_gate = torch.empty_like(x), None if gate is None else torch.empty_like(x)
        given = x, gate, upstream[0].contiguous(), of_x, of_gate
        run("gelu_gradient", -(-x.numel() // BLOCK), BLOCK, *given, x.numel(), ctx.by_tanh)
        return of_x, of_gate, None
