"""Queries, keys and values in bfloat16 on a CPU: cut into heads, normed and turned in few passes over memory.

Shapes: B batch, H heads, T length, d width of a head.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import BLOCK, run


class Heads(torch.autograd.Function):
    """(B, T, 3 H d) projections to (B, H, T, d) queries, keys and values; see `bakeoff.ops.attention_heads`.

    A pair of channels is turned as x cos + (x P) sin, where P is a matrix that changes the places of the two and the
    sign of one: its product is exact, and all passes go over memory in its order.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        heads: int,
        gains: Tensor | None,
        epsilon: float,
        waves: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gains are (2, d), of queries and keys, or None: no norm; waves (T, d / 2) each, or None: nothing turns."""
        joined = projected.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).contiguous()  # (3, B, H, T, d)
        both, width, dtype = joined[:2], joined.shape[-1], projected.dtype
        ctx.waves = waves
        scale: Tensor | None = None
        normed: Tensor | None = None
        if gains is not None:
            gains = gains.float()[:, None, None, None]  # (2, 1, 1, 1, d)
            squares = torch.linalg.vector_norm(both, dim=-1, keepdim=True).float().square_()
            scale = squares.div_(width).add_(epsilon).rsqrt_().to(dtype)  # (2, B, H, T, 1)
            both = normed = both * scale
        ctx.save_for_backward(normed, scale, gains)
        if waves is None:
            both = both if gains is None else both * gains.to(dtype)
        else:
            cosine, sine = _tables(*waves)
            if gains is not None:
                cosine, sine = cosine * gains, sine * _other_half(gains)
            both = (both * cosine.to(dtype)).addcmul_(both @ _exchange(width, dtype), sine.to(dtype))
        return both[0], both[1], joined[2]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the projections and of the gains."""
        normed, scale, gains = ctx.saved_tensors
        batch, heads, length, width = upstream[0].shape
        of_projected = upstream[0].new_empty(batch, length, 3, heads, width)
        of_gains = None if gains is None else gains.new_empty(2, width)
        for kind, above in enumerate(upstream):
            into = of_projected[:, :, kind].transpose(1, 2)
            if kind < 2 and ctx.waves is not None:
                above = _turned_back(above.contiguous(), *ctx.waves)
            if kind < 2 and normed is not None and of_gains is not None:
                n, gain = normed[kind], gains[kind, 0, 0, 0]
                product = (above * n).view(-1, width)
                of_gains[kind] = product.sum(0)
                # mean_i(u_i n_i) with u = g dy, in all channels of a head at once.
                mean = product @ (gain[:, None] / width).expand(-1, width).to(product.dtype)
                above = (above * gain.to(above.dtype)).addcmul_(n, mean.view_as(n), value=-1)
                torch.mul(above, scale[kind], out=into)
            else:
                into.copy_(above)
        return of_projected.flatten(2), None, of_gains, None, None


def _turned_back(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """(B, H, T, d) gradients turned backwards."""
    cosine, sine = (each.to(x.dtype) for each in _tables(cosine, sine))
    width = x.shape[-1]
    back = x * cosine
    back.view(-1, width).addmm_((x * sine).view(-1, width), _exchange(width, x.dtype).t())
    return back


def _tables(cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
    """(T, d / 2) cosines and sines of pairs, for both halves of the channels."""
    return torch.cat([cosine, cosine], dim=-1), torch.cat([sine, sine], dim=-1)


def _other_half(x: Tensor) -> Tensor:
    """The two halves of the last dimension in each other's place."""
    return torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)


@lru_cache(maxsize=8)
def _exchange(width: int, dtype: torch.dtype) -> Tensor:
    """(d, d) P, where x P has -x[i + d/2] in place i and x[i] in place i + d/2."""
    with torch.inference_mode(False):
        half = torch.eye(width // 2, dtype=dtype)
        zero = torch.zeros_like(half)
        return torch.cat([torch.cat([zero, half], dim=1), torch.cat([-half, zero], dim=1)])


class HeadsByKernel(torch.autograd.Function):
    """The same in one pass each way (`kernels/attention_heads.c`), computed in float32 and rounded once."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        heads: int,
        gains: Tensor | None,
        epsilon: float,
        waves: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `Heads`."""
        rows, length, size = projected.shape
        projected, width = projected.contiguous(), size // heads // 3
        gains = None if gains is None else gains.float()
        cosine, sine = (None, None) if waves is None else (each.contiguous() for each in waves)
        made = projected.new_empty(3, rows, heads, length, width)
        shape = (rows, length, heads, width)
        run("attention_heads", rows * length, size, projected, made, gains, cosine, sine, *shape, epsilon)
        ctx.save_for_backward(projected if gains is not None else None, gains, cosine, sine)
        ctx.shape, ctx.epsilon = shape, epsilon
        return made[0], made[1], made[2]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the projections and of the gains."""
        projected, gains, cosine, sine = ctx.saved_tensors
        rows, length, heads, width = ctx.shape
        above = [each.contiguous() for each in upstream]
        of_projected = above[0].new_empty(rows, length, 3 * heads * width)
        blocks = -(-rows * length // BLOCK)
        of_gains = None if gains is None else projected.new_empty(blocks, 2, width, dtype=torch.float32)
        tables = (of_gains, gains, cosine, sine)
        size = BLOCK * 3 * heads * width
        run("attention_heads_gradient", blocks, size, projected, *above, of_projected, *tables, *ctx.shape, ctx.epsilon)
        return of_projected, None, None if of_gains is None else of_gains.sum(0), None, None
