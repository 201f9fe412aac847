"""Attention within documents that stand one after the other, by torch's FlashAttention for sequences of any lengths.

No mask is made, and pairs of tokens of different documents cost nothing.

Shapes: B rows, H heads, T length, D width of a head, N documents.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bakeoff.ops.attention import attention


class Within(NamedTuple):
    """What tokens see, where B rows of T tokens are laid out one after the other as N documents."""

    bounds: Tensor
    """(N + 1,) int32 the first position of each document, and the end of the last one."""
    longest: int
    """No document has more tokens."""
    sides: tuple[int, int]
    """The numbers of tokens before a token and after it that it sees; -1: all."""
    scale: float
    """Factor of the products of queries and keys."""
    dropout: float
    """Rate of the weights' dropout."""


Attend = Callable[[Tensor, Tensor, Tensor, Within], Tensor]
"""A function of (B * T, H, D) queries, keys and values, and what tokens see, to outputs of the same shape."""


class Kernel(NamedTuple):
    """A function of torch's, called by its signature."""

    attend: Attend
    windows: bool
    """Whether tokens may see a window alone."""


class Demands(NamedTuple):
    """What the layers of a stack demand of a kernel."""

    windows: bool
    """Some attend within a window."""
    dropout: bool
    """Some drop weights of attention out."""
    width: int
    """The largest width of a head."""


WIDEST_HEAD = 256
"""The largest width of a head that the kernel takes."""

WIDTHS = 8
"""The number of which every width of a head is a multiple."""


def adapted(attend: Callable[..., Any]) -> Kernel | None:
    """Torch's `varlen_attn` with one of its known signatures; None: it has another one.

    torch 2.10 says `is_causal`, and has neither windows nor another scale; later versions say `window_size`. None of
    them drops weights out.
    """
    known = inspect.signature(attend).parameters

    def with_window(query: Tensor, key: Tensor, value: Tensor, within: Within) -> Tensor:
        ends, lengths = (within.bounds,) * 2, (within.longest,) * 2
        mixed: Tensor = attend(query, key, value, *ends, *lengths, scale=within.scale, window_size=within.sides)
        return mixed

    def with_causal(query: Tensor, key: Tensor, value: Tensor, within: Within) -> Tensor:
        assert within.sides in ((-1, -1), (-1, 0)), "there are no windows"
        query = query * (within.scale * query.shape[-1] ** 0.5)  # its own scale is 1 / sqrt(D)
        ends, lengths = (within.bounds,) * 2, (within.longest,) * 2
        mixed: Tensor = attend(query, key, value, *ends, *lengths, is_causal=within.sides[1] == 0)
        return mixed

    if {"window_size", "scale"} <= set(known):
        return Kernel(with_window, windows=True)
    return Kernel(with_causal, windows=False) if "is_causal" in known else None


def adapted_with_dropout(attend: Any) -> Kernel | None:
    """The operation below `varlen_attn`, which drops weights out; None: it has not the arguments that are known."""
    known = {argument.name for argument in attend._schema.arguments}
    if not {"cum_seq_q", "max_q", "dropout_p", "is_causal", "scale", "window_size_left", "window_size_right"} <= known:
        return None

    def with_dropout(query: Tensor, key: Tensor, value: Tensor, within: Within) -> Tensor:
        ends, lengths, sides = (within.bounds,) * 2, (within.longest,) * 2, within.sides
        settings = {"scale": within.scale, "window_size_left": sides[0], "window_size_right": sides[1]}
        mixed = attend(query, key, value, *ends, *lengths, within.dropout, sides == (-1, 0), False, **settings)
        result: Tensor = mixed[0]
        return result

    return Kernel(with_dropout, windows=True)


_KERNELS: dict[bool, Kernel | None] = {}  # by whether they drop weights out; what is compiled reads it as it is


def kernel(dropout: bool) -> Kernel | None:
    """A kernel of torch's that drops weights out or not, looked for when it is first asked for; None: there is none."""
    if dropout not in _KERNELS:
        try:
            if dropout:
                _KERNELS[dropout] = adapted_with_dropout(torch.ops.aten._flash_attention_forward.default)
            else:
                from torch.nn.attention.varlen import varlen_attn

                _KERNELS[dropout] = adapted(varlen_attn)
        except (ImportError, AttributeError):
            _KERNELS[dropout] = None
    return _KERNELS[dropout]


def why_not(device: torch.device, products: torch.dtype, demands: Demands) -> str | None:
    """The reason why a forward pass cannot attend by a kernel; None: it can, on a GPU that has it, in bfloat16.

    Args:
        device: the device of the pass; meta tensors stand for those of a GPU.
        products: the type in which the pass multiplies.
        demands: those of its layers.
    """
    if device.type not in ("cuda", "meta"):
        return "FlashAttention within documents is for GPUs of CUDA"
    if products != torch.bfloat16:
        return "FlashAttention within documents multiplies in bfloat16"
    found = kernel(demands.dropout)
    if found is None:
        what = "for dropout of the weights " if demands.dropout else ""
        return f"this version of torch has no kernel {what}within documents"
    if demands.windows and not found.windows:
        return "this version of torch has no windows within documents"
    return None if device.type == "meta" else _failure(device, demands)


@cache
def _failure(device: torch.device, demands: Demands) -> str | None:
    """Why a GPU cannot attend by the kernel, which is tried once against masks."""
    if not (torch.backends.cuda.is_flash_attention_available() and torch.cuda.get_device_capability(device) >= (8, 0)):
        return "this GPU has no FlashAttention"
    devices = [device] if device.type == "cuda" else []
    with torch.inference_mode(False), torch.random.fork_rng(devices), torch.autocast(device.type, enabled=False):
        try:
            return trial(device, demands)
        except Exception as error:  # whatever it is, there is another way
            return f"FlashAttention within documents failed here ({str(error).strip().splitlines()[0]})"


def trial(device: torch.device, demands: Demands) -> str | None:
    """Compare a kernel with attention by masks on documents of some lengths; what differs, None: nothing does."""
    drawn = torch.Generator().manual_seed(0)
    shape, bounds = (2, 2, 48, demands.width), torch.tensor([0, 7, 7, 40, 48, 48, 90, 96], dtype=torch.int32)
    leaves = [torch.randn(shape, generator=drawn).to(device, torch.bfloat16).requires_grad_() for _ in range(3)]
    upstream = torch.randn(shape, generator=drawn).to(device, torch.bfloat16)
    owners = torch.searchsorted(bounds.long(), torch.arange(96), right=True).view(2, 48)
    distance = torch.arange(48) - torch.arange(48)[:, None]
    dropped = (0.0, 0.5) if demands.dropout else (0.0,)
    with torch.enable_grad():
        for causal in (False, True):
            for window in (None, 5) if demands.windows else (None,):
                inside = (owners[:, :, None] == owners[:, None]) & (distance.abs() <= (window or 48))
                mask = (inside & (distance <= 0) if causal else inside)[:, None].to(device)
                plain = attention(*(each.float() for each in leaves), mask=mask)
                expected = torch.autograd.grad(plain, leaves, upstream.float())
                for rate in dropped:
                    ends = bounds.to(device)
                    query, key, value = leaves
                    mixed = _attend(query, key, value, ends, demands.dropout, causal, window, None, rate)
                    found = torch.autograd.grad(mixed, leaves, upstream)
                    if not all(bool(each.isfinite().all()) for each in (mixed, *found)):
                        return "FlashAttention within documents gives numbers that are not finite here"
                    pairs = zip((mixed, *found), (plain, *expected), strict=True)
                    if not rate and not all(_close(one, other) for one, other in pairs):
                        return "FlashAttention within documents differs from attention with masks here"
    return None


def _close(one: Tensor, other: Tensor) -> bool:
    """Whether two results are equal up to the precision of bfloat16."""
    return bool((one.float() - other.float()).norm() <= 0.03 * other.float().norm())


def products_on(device: torch.device, weights: torch.dtype) -> torch.dtype:
    """The type in which a forward pass that is about to be made multiplies; `weights` is that of the weights."""
    kind = device.type
    if kind == "meta":
        return PRODUCTS_ON_META[-1] if PRODUCTS_ON_META else weights
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weights


PRODUCTS_ON_META: list[torch.dtype] = []
"""The types in which meta tensors are multiplied, the innermost last, where they stand for a GPU's under autocast."""


def document_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    *,
    causal: bool,
    window: int | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`attention`, in which a query sees the keys of its document alone.

    Args:
        query: (B, H, T, D).
        key: (B, H, T, D).
        value: (B, H, T, D).
        bounds: (N + 1,) int32 the first of the B * T positions of each document, rising, and B * T. No document goes on
            from one row to the next; documents may be empty.
        causal: no query sees a later key.
        window: a query sees keys at most so many positions away; None: at any distance.
        scale: factor of the products; 1 / sqrt(D) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, H, T, D).
    """
    return _attend(query, key, value, bounds, dropout > 0, causal, window, scale, dropout)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    dropping: bool,
    causal: bool,
    window: int | None,
    scale: float | None,
    dropout: float,
) -> Tensor:
    """`document_attention` by the kernel that drops weights out or by the other one."""
    found = _KERNELS[dropping]
    assert found is not None, "why_not has not been asked"
    rows, _, length, width = query.shape
    before = -1 if window is None else window
    flat = [each.transpose(1, 2).flatten(0, 1) for each in (query, key, value)]  # copies after rotations alone
    sides, factor = (before, 0 if causal else before), width**-0.5 if scale is None else scale
    mixed = found.attend(flat[0], flat[1], flat[2], Within(bounds, length, sides, factor, dropout))
    joined: Tensor = mixed.unflatten(0, (rows, length)).transpose(1, 2)
    return joined
