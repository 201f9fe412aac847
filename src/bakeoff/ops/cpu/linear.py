"""A linear layer in bfloat16 on a CPU, with the bias and its gradient in the products."""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.transposed_product import multiplies_transposed, transposed_product

SQUARE = 16
"""Side of the images as which rows are handed to a convolution of one tap."""

LEAST_ROWS = 4096
"""Least number of rows for which that is the quicker way to the weight's gradient."""


class Linear(torch.autograd.Function):
    """(..., I) states, an (O, I) weight, an (O,) bias and (..., O) r, or None, to (..., O); see `bakeoff.ops.linear`.

    States are bfloat16. A weight and a bias in float32 are rounded, and where a kernel makes their gradients these are
    not.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, beside: Tensor | None) -> Tensor:
        """The product; torch's would first copy the bias into all of its rows."""
        ctx.type = weight.dtype
        weight, bias = weight.bfloat16(), None if bias is None else bias.bfloat16()
        ctx.save_for_backward(x, weight)
        multiply = torch.ops.mkldnn._linear_pointwise
        y: Tensor
        if beside is None:
            y = multiply(x, weight, bias, "none", [], "")
        else:
            y = multiply.binary(x, beside.contiguous(), weight, bias, "add")
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of x, weight, bias and r."""
        x, weight = ctx.saved_tensors
        of_beside = upstream[0] if ctx.needs_input_grad[3] else None
        of_x = (upstream[0] @ weight) if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[1:3]):
            return of_x, None, None, of_beside
        of_weight, of_bias = _of_parameters(upstream[0].flatten(0, -2), x.flatten(0, -2), weight)
        return of_x, of_weight.to(ctx.type), of_bias.to(ctx.type) if ctx.needs_input_grad[2] else None, of_beside


def _of_parameters(above: Tensor, rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias from (N, O) upstream gradients and (N, I) states."""
    if multiplies_transposed(above, rows.shape[1]):
        return transposed_product(above, rows)
    if len(rows) < LEAST_ROWS or len(rows) % SQUARE**2:
        return above.t() @ rows, above.sum(0)
    _, of_weight, of_bias = torch.ops.aten.convolution_backward(
        _images(above),
        _images(rows),
        weight[:, :, None, None],
        [len(weight)],
        stride=[1, 1],
        padding=[0, 0],
        dilation=[1, 1],
        transposed=False,
        output_padding=[0, 0],
        groups=1,
        output_mask=[False, True, True],
    )
    return of_weight.view_as(weight), of_bias


def _images(x: Tensor) -> Tensor:
    """(N, D) rows as square images of D channels, which lie side by side in memory as they do in rows."""
    return x.contiguous().view(-1, SQUARE, SQUARE, x.shape[-1]).permute(0, 3, 1, 2)


@cache
def multiplies_by_onednn() -> bool:
    """Whether oneDNN multiplies bfloat16 on this processor."""
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return supported is not None and hasattr(torch.ops.mkldnn, "_linear_pointwise") and bool(supported())
