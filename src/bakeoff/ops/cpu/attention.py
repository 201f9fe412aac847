"""Attention in bfloat16 on a CPU as one kernel of C, forward and backward, without scores or weights in memory.

Shapes: B batch, H heads, T queries, S keys, d width of a head.
"""

import ctypes
from ctypes import c_float, c_int64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bakeoff.ops.cpu.compiled_kernels import multiplies_matrices, run
from bakeoff.ops.cpu.dropout import drawn_seed, threshold_of

MOST_TOKENS = 1 << 16
"""Largest number of queries or of keys; more would repeat the random numbers of dropout."""

EVERYWHERE = 1 << 40
"""A distance beyond every key."""


class Sight(NamedTuple):
    """Which keys a query sees."""

    mask: Tensor | None = None
    """Boolean, broadcast to (B, H, T, S), True where a query may see a key; None: everywhere."""
    before: int = EVERYWHERE
    """Largest distance of a key before the query's own; the last query's own key is the last one."""
    after: int = EVERYWHERE
    """Largest distance of a key after it."""
    own: bool = False
    """A query sees its own key, whatever the mask says."""


class Treatment(NamedTuple):
    """What is done to queries and keys, head by head, before they are multiplied."""

    epsilon: float = 0.0
    """Epsilon of the norms of heads, if there are gains."""
    waves: tuple[Tensor, Tensor] | None = None
    """(T, d / 2) float32 cosines and sines of rotary positions; None: nothing is turned."""


def attends_by_kernel(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether the kernel can attend: tensors of bfloat16 on a CPU that has its instructions, and heads of one width."""
    if query.dim() != 4 or key.shape != value.shape or not query.dtype == key.dtype == value.dtype:
        return False
    (*rows, queries, width), (*rows_of_keys, keys, width_of_keys) = query.shape, key.shape
    fits = max(queries, keys) <= MOST_TOKENS and query.numel() > 0 and keys > 0
    return fits and rows == rows_of_keys and width == width_of_keys and multiplies_matrices(query)


def attend(query: Tensor, key: Tensor, value: Tensor, sight: Sight, scale: float | None, dropout: float) -> Tensor:
    """`bakeoff.ops.attention.attention` where it `attends_by_kernel`."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    mixed: Tensor = Attention.apply(query, key, value, sight, factor, dropout)  # type: ignore[no-untyped-call]
    return mixed


class _View(ctypes.Structure):
    """`struct view` of `kernels/attention.h`."""

    _fields_ = (("numbers", c_void_p), ("row", c_int64), ("head", c_int64), ("token", c_int64))


class _Call(ctypes.Structure):
    """`struct call` of `kernels/attention.h`."""

    _fields_ = (
        ("rows", c_int64),
        ("heads", c_int64),
        ("queries", c_int64),
        ("keys", c_int64),
        ("width", c_int64),
        ("query", _View),
        ("key", _View),
        ("value", _View),
        ("mixed", _View),
        ("of_mixed", _View),
        ("of_query", _View),
        ("of_key", _View),
        ("of_value", _View),
        ("logarithms", c_void_p),
        ("mask", c_void_p),
        ("mask_row", c_int64),
        ("mask_head", c_int64),
        ("mask_query", c_int64),
        ("before", c_int64),
        ("after", c_int64),
        ("own", c_int64),
        ("dropped", c_int64),
        ("seed", c_int64),
        ("query_gain", c_void_p),
        ("key_gain", c_void_p),
        ("cosines", c_void_p),
        ("sines", c_void_p),
        ("of_gains", c_void_p),
        ("scale", c_float),
        ("epsilon", c_float),
        ("failed", c_int64),
    )


class Attention(torch.autograd.Function):
    """(B, H, T, d) queries and (B, H, S, d) keys and values to (B, H, T, d), whose memory is that of (B, T, H, d)."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, sight: Sight, scale: float, dropout: float
    ) -> Tensor:
        """The weighted values; `dropout` is the rate of the weights'."""
        query, key, value = (each if each.stride(-1) == 1 else each.contiguous() for each in (query, key, value))
        ctx.pass_ = _Pass(query, key, None, Treatment(), sight, scale, dropout)
        mixed: Tensor = ctx.pass_.forward((query, key, value), any(ctx.needs_input_grad))
        ctx.save_for_backward(query, key, value, mixed)
        return mixed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of queries, keys and values."""
        query, key, value, mixed = ctx.saved_tensors
        of_query, of_key, of_value = (each.new_empty(each.shape) for each in (query, key, value))
        ctx.pass_.backward((query, key, value), mixed, upstream[0], (of_query, of_key, of_value))
        return of_query, of_key, of_value, None, None, None


class SelfAttention(torch.autograd.Function):
    """(B, T, 3 H d) queries, keys and values from one projection, normed and turned, to (B, T, H d)."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        heads: int,
        gains: Tensor | None,
        treatment: Treatment,
        sight: Sight,
        scale: float,
        dropout: float,
    ) -> Tensor:
        """Gains are (2, d), of queries and keys, or None: there is no norm."""
        projected = projected.contiguous()
        query, key, value = _heads_of(projected, heads)
        ctx.pass_, ctx.heads = _Pass(query, key, gains, treatment, sight, scale, dropout), heads
        mixed: Tensor = ctx.pass_.forward((query, key, value), any(ctx.needs_input_grad))
        ctx.save_for_backward(projected, mixed)
        return mixed.transpose(1, 2).flatten(-2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the projections and of the gains."""
        projected, mixed = ctx.saved_tensors
        of_projected = torch.empty_like(projected)
        above = upstream[0].unflatten(-1, (ctx.heads, -1)).transpose(1, 2)
        of_heads = _heads_of(of_projected, ctx.heads)
        of_gains = ctx.pass_.backward(_heads_of(projected, ctx.heads), mixed, above, of_heads)
        return of_projected, None, of_gains, None, None, None, None


def _heads_of(projected: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """The (B, H, T, d) queries, keys and values of (B, T, 3 H d) projections, in their memory."""
    query, key, value = projected.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind()
    return query, key, value


class _Pass:
    """The two passes of the kernel over the same queries, keys and values, which it does not keep."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        gains: Tensor | None,
        treatment: Treatment,
        sight: Sight,
        scale: float,
        dropout: float,
    ) -> None:
        rows, heads, queries, width = query.shape
        self.gains = None if gains is None else gains.detach().float().contiguous()
        self.waves = treatment.waves
        self.logarithms: Tensor | None = None
        self.mask = None if sight.mask is None else _by_key(sight.mask, key.shape[2]).expand(rows, heads, queries, -1)
        call = self.call = _Call(rows, heads, queries, key.shape[2], width)
        if self.mask is not None:
            call.mask = self.mask.data_ptr()
            call.mask_row, call.mask_head, call.mask_query, _ = self.mask.stride()
        call.before, call.after, call.own = sight.before, sight.after, sight.own
        if dropout > 0.0:
            call.dropped, call.seed = threshold_of(dropout), drawn_seed()
        if self.gains is not None:
            call.query_gain, call.key_gain = (gain.data_ptr() for gain in self.gains)
        if treatment.waves is not None:
            cosines, sines = treatment.waves
            assert all(each.dtype == torch.float32 and each.is_contiguous() for each in treatment.waves)
            call.cosines, call.sines = cosines.data_ptr(), sines.data_ptr()
        call.scale, call.epsilon = scale, treatment.epsilon

    def forward(self, inputs: tuple[Tensor, Tensor, Tensor], differentiated: bool) -> Tensor:
        """(B, H, T, d) the weighted values, in memory of (B, T, H, d)."""
        call, like = self.call, inputs[0]
        mixed = like.new_empty(call.rows, call.queries, call.heads, call.width).transpose(1, 2)
        if differentiated:
            self.logarithms = like.new_empty(call.rows, call.heads, call.queries, dtype=torch.float32)
            call.logarithms = self.logarithms.data_ptr()
        self._run("attention_forward", inputs, {"mixed": mixed})
        return mixed

    def backward(
        self,
        inputs: tuple[Tensor, ...],
        mixed: Tensor,
        upstream: Tensor,
        gradients: tuple[Tensor, ...],
    ) -> Tensor | None:
        """The gradients are written; that of the gains is returned, (2, d), if there are gains."""
        upstream = upstream if upstream.stride(-1) == 1 else upstream.contiguous()
        of_gains = None
        if self.gains is not None:
            of_gains = mixed.new_empty(self.call.rows * self.call.heads, 2, self.call.width, dtype=torch.float32)
            self.call.of_gains = of_gains.data_ptr()
        outputs = dict(zip(("of_query", "of_key", "of_value"), gradients, strict=True))
        self._run("attention_backward", inputs, {"mixed": mixed, "of_mixed": upstream, **outputs})
        return None if of_gains is None else of_gains.sum(0)

    def _run(self, name: str, inputs: tuple[Tensor, ...], others: dict[str, Tensor]) -> None:
        call = self.call
        for part, x in {**dict(zip(("query", "key", "value"), inputs, strict=True)), **others}.items():
            assert x.stride(-1) == 1 or x.shape[-1] == 1
            setattr(call, part, _View(x.data_ptr(), *x.stride()[:3]))
        run(name, call.rows * call.heads, call.queries * call.keys, ctypes.addressof(call))
        if call.failed:
            raise RuntimeError("attention can't allocate memory")


def _by_key(mask: Tensor, keys: int) -> Tensor:
    """The mask with a value for each key, which lie side by side in memory."""
    mask = mask.expand(*mask.shape[:-1], keys)
    return mask if mask.stride(-1) == 1 else mask.contiguous()
