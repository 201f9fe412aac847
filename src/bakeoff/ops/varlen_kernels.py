"""torch's functions for attention within sequences of any lengths, called by the signatures that they have had.

Shapes: B rows, H heads, T queries of a row, U keys of a row, D width of a head, N documents.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Within(NamedTuple):
    """What queries see, where B rows of T queries and of U keys are laid out one after the other as N documents."""

    bounds: tuple[Tensor, Tensor]
    """(N + 1,) int32 the first query of each document, and the end of the last one; and the same of its keys."""
    longest: tuple[int, int]
    """No document has more queries, or more keys."""
    sides: tuple[int, int]
    """The numbers of keys before a query and after it that it sees; -1: all."""
    scale: float
    """Factor of the products of queries and keys."""
    dropout: float
    """Rate of the weights' dropout."""


Attend = Callable[[Tensor, Tensor, Tensor, Within], Tensor]
"""A function of (B * T, H, D) queries, (B * U, H, D) keys and values, and what queries see, to (B * T, H, D)."""


class Kernel(NamedTuple):
    """A function of torch's, called by its signature."""

    attend: Attend
    windows: bool
    """Whether tokens may see a window alone."""


def adapted(attend: Callable[..., Any]) -> Kernel | None:
    """Torch's `varlen_attn` with one of its known signatures; None: it has another one.

    torch 2.10 says `is_causal`, and has neither windows nor another scale; later versions say `window_size`. None of
    them drops weights out.
    """
    known = inspect.signature(attend).parameters

    def with_window(query: Tensor, key: Tensor, value: Tensor, within: Within) -> Tensor:
        settings = {"scale": within.scale, "window_size": within.sides}
        mixed: Tensor = attend(query, key, value, *within.bounds, *within.longest, **settings)
        return mixed

    def with_causal(query: Tensor, key: Tensor, value: Tensor, within: Within) -> Tensor:
        assert within.sides in ((-1, -1), (-1, 0)), "there are no windows"
        query = query * (within.scale * query.shape[-1] ** 0.5)  # its own scale is 1 / sqrt(D)
        causal = within.sides[1] == 0
        mixed: Tensor = attend(query, key, value, *within.bounds, *within.longest, is_causal=causal)
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
        sides, where = within.sides, (*within.bounds, *within.longest)
        settings = {"scale": within.scale, "window_size_left": sides[0], "window_size_right": sides[1]}
        mixed = attend(query, key, value, *where, within.dropout, sides == (-1, 0), False, **settings)
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


def ready(dropout: bool) -> Kernel:
    """The kernel that `kernel` has found before."""
    found = _KERNELS[dropout]
    assert found is not None, "why_not has not been asked"
    return found
