"""Attention within documents that stand one after the other, by torch's FlashAttention for sequences of any lengths.

No mask is made, and pairs of tokens of different documents cost nothing.

Shapes: B rows, H heads, T length, D width of a head, N documents.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Attend(Protocol):
    """Attention over sequences that are laid out one after the other."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bounds: Tensor,
        longest: int,
        sides: tuple[int, int],
        scale: float,
    ) -> Tensor:
        """(B * T, H, D) of queries, keys and values of that shape.

        Args:
            query: the queries.
            key: the keys.
            value: the values.
            bounds: (N + 1,) int32 the first position of each document, and the end of the last one.
            longest: no document has more tokens.
            sides: the numbers of tokens before a token and after it that it sees; -1: all.
            scale: factor of the products of queries and keys.
        """
        ...


class Kernel(NamedTuple):
    """A function of torch's, called by its signature."""

    attend: Attend
    windows: bool
    """Whether tokens may see a window alone."""


WIDEST_HEAD = 256
"""The largest width of a head that the kernel takes."""

WIDTHS = 8
"""The number of which the width of a head has to be a multiple for the kernel."""


def adapted(attend: Callable[..., Any]) -> Kernel | None:
    """A function of torch's with one of its known signatures; None: it has another one.

    torch 2.10 says `is_causal`, and has neither windows nor another scale; later versions say `window_size`.
    """
    known = inspect.signature(attend).parameters

    def with_window(
        query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, sides: tuple[int, int], scale: float
    ) -> Tensor:
        mixed: Tensor = attend(query, key, value, bounds, bounds, longest, longest, scale=scale, window_size=sides)
        return mixed

    def with_causal(
        query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, sides: tuple[int, int], scale: float
    ) -> Tensor:
        assert sides in ((-1, -1), (-1, 0)), "there are no windows"
        query = query * (scale * query.shape[-1] ** 0.5)  # its own scale is 1 / sqrt(D)
        mixed: Tensor = attend(query, key, value, bounds, bounds, longest, longest, is_causal=sides[1] == 0)
        return mixed

    if {"window_size", "scale"} <= set(known):
        return Kernel(with_window, windows=True)
    return Kernel(with_causal, windows=False) if "is_causal" in known else None


_KERNEL: list[Kernel | None] = []  # a list, which is read by what is compiled as it is


def kernel() -> Kernel | None:
    """`varlen_attn` of torch, looked for when it is first asked for; None: this version has none that is known."""
    if not _KERNEL:
        try:
            from torch.nn.attention.varlen import varlen_attn
        except ImportError:
            _KERNEL.append(None)
        else:
            _KERNEL.append(adapted(varlen_attn))
    return _KERNEL[0]


def runs_on(device: torch.device, products: torch.dtype, windows: bool) -> bool:
    """Whether a forward pass can attend by the kernel: on a GPU that has it, in bfloat16.

    Args:
        device: the device of the pass; meta tensors stand for those of a GPU.
        products: the type in which the pass multiplies.
        windows: some layers attend within a window.
    """
    if device.type not in ("cuda", "meta") or products != torch.bfloat16:
        return False
    found = kernel()
    if found is None or (windows and not found.windows):
        return False
    return device.type == "meta" or _has_flash(device)


def products_on(device: torch.device, weights: torch.dtype) -> torch.dtype:
    """The type in which a forward pass that is about to be made multiplies; `weights` is that of the weights."""
    kind = device.type
    if kind == "meta":
        return PRODUCTS_ON_META[-1] if PRODUCTS_ON_META else weights
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weights


PRODUCTS_ON_META: list[torch.dtype] = []
"""The types in which meta tensors are multiplied, the innermost last, where they stand for a GPU's under autocast."""


@cache
def _has_flash(device: torch.device) -> bool:
    """Whether a GPU has FlashAttention, which is for those since Ampere."""
    return torch.backends.cuda.is_flash_attention_available() and torch.cuda.get_device_capability(device) >= (8, 0)


def document_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bounds: Tensor,
    *,
    causal: bool,
    window: int | None = None,
    scale: float | None = None,
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

    Returns:
        (B, H, T, D).
    """
    found = _KERNEL[0]
    assert found is not None, "runs_on has not been asked"
    rows, _, length, width = query.shape
    before = -1 if window is None else window
    flat = [each.transpose(1, 2).flatten(0, 1) for each in (query, key, value)]  # copies after rotations alone
    sides = (before, 0 if causal else before)
    mixed = found.attend(flat[0], flat[1], flat[2], bounds, length, sides, width**-0.5 if scale is None else scale)
    joined: Tensor = mixed.unflatten(0, (rows, length)).transpose(1, 2)
    return joined
