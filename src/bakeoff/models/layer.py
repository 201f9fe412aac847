"""The application of one layer: as it is, at some positions alone, or compiled."""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bakeoff.models.context import Context
from bakeoff.models.packing import at_positions
from bakeoff.models.part import Part, State, apply_part
from bakeoff.row import Row

RECOMPILE_LIMIT = 64
"""Largest number of variants of a compiled layer: kinds of layers times training or not, padded or not, packed or
not.
"""


def apply_layer(
    parts: tuple[Part, ...], x: Tensor, context: Context, states: tuple[State, ...] | None = None
) -> tuple[Tensor, tuple[State, ...]]:
    """The output of a layer, and its states.

    Args:
        parts: the parts of the layer, in the order in which they are applied.
        x: (B, T, D).
        context: the context of the parts.
        states: the state of each part after the previous token; None where nothing continues.

    Returns:
        (B, T, D'), and the states after the last token.
    """
    after: list[State] = []
    for part, state in zip(parts, states or (None,) * len(parts), strict=True):
        x, new = apply_part(part, x, context, state)
        after.append(new)
    return x, tuple(after)


def apply_layer_at(parts: tuple[Part, ...], x: Tensor, context: Context, wanted: Tensor) -> Tensor:
    """(B, M, D) output of the last layer at (B, M) positions; parts after the last mixer compute these alone."""
    mixing = max((index for index, part in enumerate(parts) if part.reach() != (0, 0)), default=-1)
    alone = Context(
        Row(context.row.ids), source=context.source, source_mask=context.source_mask
    )  # each token by itself
    for index, part in enumerate(parts):
        if index > mixing:
            x = at_positions(x, wanted, context.packing) if index == 0 else x
            x, _ = part(x, alone)
        elif index == mixing and part.chooses:
            x, _ = part(x, context._replace(wanted=wanted))
        else:
            x, _ = apply_part(part, x, context)
            x = at_positions(x, wanted, context.packing) if index == mixing else x
    return x


Apply = Callable[..., tuple[Tensor, tuple[State, ...]]]
"""`apply_layer`, or a function that does the same."""


def applying(compiled: bool, replayed: bool, recomputed: bool) -> Apply:
    """The function that applies a layer in a pass.

    Args:
        compiled: compile it.
        replayed: in passes with gradients, replay it as a CUDA graph, see `replays.py`.
        recomputed: in passes with gradients, keep only the layer's inputs for the backward pass, and apply the layer
            anew there. Activation checkpointing (Chen et al. 2016, arXiv:1604.06174): dropout draws the same masks, so
            that gradients have the same bits, for a third more operations.
    """
    learns = torch.is_grad_enabled()
    apply = compiled_layer(replayed and learns) if compiled else apply_layer
    return partial(checkpoint, apply, use_reentrant=False) if recomputed and learns else apply


@cache
def compiled_layer(replayed: bool = False) -> Apply:
    """One layer compiled: layers of the same structure reuse the code, because parameters are inputs of the graph.

    It is made when first needed, since the compiler takes seconds to import.

    Args:
        replayed: record the kernels of each call as a CUDA graph, and launch it at once from then on, see `replays.py`.
    """
    _set_compiler()
    return torch.compile(apply_layer, options={"triton.cudagraphs": True} if replayed else None)


def compile_within(part: Part) -> None:
    """Compile a part, but not what is called before and after its `forward`, where processes gather its weights."""
    setattr(part, "forward", partial(_compiled_forward(), part))  # noqa: B010


@cache
def _compiled_forward() -> Callable[..., tuple[Tensor, State]]:
    _set_compiler()
    return torch.compile(_forward)


def _forward(part: Part, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
    applied: tuple[Tensor, State] = type(part).forward(part, x, context, state)
    return applied


@cache  # once
def _set_compiler() -> None:
    # Past its limit of variants torch would silently go on without compiling.
    torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    leave_uncompiled()


UNCOMPILED: list[tuple[type[nn.Module], str]] = []
"""Classes, and the names of their methods.

They are `torch.compiler.disable`d when something is first compiled. A decorator would import the compiler with the
class, which takes longer than importing torch itself, and few processes compile.
"""


def leave_uncompiled() -> None:
    """Make the compiler leave the methods in `UNCOMPILED` as they are from now on; to be called once."""
    for owner, name in UNCOMPILED:
        setattr(owner, name, torch.compiler.disable(getattr(owner, name)))
