"""Attention within documents that stand one after the other, by torch's FlashAttention for sequences of any lengths.

No mask is made, and pairs of tokens of different documents cost nothing. Padding of a source is passed over alike.

Shapes: B rows, H heads, T length, U length of a source, D width of a head, N documents.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from bakeoff.ops.attention import attention
from bakeoff.ops.varlen_kernels import Within, kernel, ready
from bakeoff.spans import bounds_of_source


class Demands(NamedTuple):
    """What the layers of a stack demand of a kernel."""

    windows: bool
    """Some attend within a window."""
    dropout: bool
    """Some drop weights of attention out."""
    width: int
    """The largest width of a head."""
    source: bool = False
    """They attend to a source, whose rows have lengths of their own."""


WIDEST_HEAD = 256
"""The largest width of a head that the kernel takes."""

WIDTHS = 8
"""The number of which every width of a head is a multiple."""


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
    drawn, shape = torch.Generator().manual_seed(0), (2, 2, TRIED, demands.width)
    leaves = [torch.randn(shape, generator=drawn).to(device, torch.bfloat16).requires_grad_() for _ in range(3)]
    upstream = torch.randn(shape, generator=drawn).to(device, torch.bfloat16)
    query, key, value = leaves
    with torch.enable_grad():
        for mask, bounds, sides in _padded_source(device) if demands.source else _documents(device, demands.windows):
            plain = attention(query.float(), key.float(), value.float(), mask=mask)
            expected = torch.autograd.grad(plain, leaves, upstream.float())
            for rate in (0.0, 0.5) if demands.dropout else (0.0,):
                mixed = _attended(query, key, value, bounds, demands.dropout, sides, None, rate)
                found = torch.autograd.grad(mixed, leaves, upstream)
                if (wrong := _wrong((mixed, *found), (plain, *expected), compared=not rate)) is not None:
                    return wrong
    return None


TRIED = 48
"""The length of the two rows of a trial."""

_Case = tuple[Tensor, tuple[Tensor, Tensor], tuple[int, int]]
"""A mask, and the bounds and the sides that say the same to a kernel."""


def _documents(device: torch.device, windows: bool) -> Iterator[_Case]:
    """The cases of a trial on documents, some of them empty."""
    bounds = torch.tensor([0, 7, 7, 40, 48, 48, 90, 96], dtype=torch.int32)
    owners = torch.searchsorted(bounds.long(), torch.arange(2 * TRIED), right=True).view(2, TRIED)
    distance = torch.arange(TRIED) - torch.arange(TRIED)[:, None]
    ends = bounds.to(device)
    for causal in (False, True):
        for window in (None, 5) if windows else (None,):
            inside = (owners[:, :, None] == owners[:, None]) & (distance.abs() <= (window or TRIED))
            mask = (inside & (distance <= 0) if causal else inside)[:, None].to(device)
            yield mask, (ends, ends), _sides(causal, window)


def _padded_source(device: torch.device) -> Iterator[_Case]:
    """The case of a trial on sources, one of them with padding."""
    there = torch.ones(2, TRIED, dtype=torch.bool, device=device)
    there[0, 31:] = False
    yield there[:, None, None], bounds_of_source(there, TRIED), ALL


def _wrong(found: Sequence[Tensor], expected: Sequence[Tensor], compared: bool) -> str | None:
    """What is wrong with an output and its gradients, which are compared with others unless weights were dropped."""
    if not all(bool(each.isfinite().all()) for each in found):
        return "FlashAttention within documents gives numbers that are not finite here"
    if compared and not all(_close(one, other) for one, other in zip(found, expected, strict=True)):
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
    sides = _sides(causal, window)
    return _attended(query, key, value, (bounds, bounds), dropout > 0, sides, scale, dropout)


def _sides(causal: bool, window: int | None) -> tuple[int, int]:
    """`Within.sides` of a query that sees later keys or not, at most so far away."""
    before = -1 if window is None else window
    return before, 0 if causal else before


def source_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: tuple[Tensor, Tensor],
    *,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`attention` of each row's queries to the tokens of its source, of another length and without its padding.

    Args:
        query: (B, H, T, D).
        key: (B, H, U, D).
        value: (B, H, U, D).
        bounds: what `bounds_of_source` gives.
        scale: factor of the products; 1 / sqrt(D) where absent.
        dropout: rate of the weights' dropout; 0 outside training.

    Returns:
        (B, H, T, D).
    """
    return _attended(query, key, value, bounds, dropout > 0, ALL, scale, dropout)


ALL = (-1, -1)
"""Sides of a query that sees all keys of its document."""


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: tuple[Tensor, Tensor],
    dropping: bool,
    sides: tuple[int, int],
    scale: float | None,
    dropout: float,
) -> Tensor:
    """What the kernel that drops weights out, or the other one, makes of rows of queries and of keys."""
    rows, _, length, width = query.shape
    flat = [each.transpose(1, 2).flatten(0, 1) for each in (query, key, value)]  # copies after rotations alone
    factor = width**-0.5 if scale is None else scale
    within = Within(bounds, (length, key.shape[2]), sides, factor, dropout)
    mixed = ready(dropping).attend(flat[0], flat[1], flat[2], within)
    joined: Tensor = mixed.unflatten(0, (rows, length)).transpose(1, 2)
    return joined
