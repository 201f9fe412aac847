"""Parts of layers: functions of hidden states that can continue from a state."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.context import Context

State: TypeAlias = "Tensor | tuple[State, ...] | None"
"""A part's memory of the tokens that it has read: a tensor, or a tree of tensors; rows come first in each."""


def map_state(state: State, function: Callable[[Tensor], Tensor]) -> State:
    """The tree with `function` applied to each tensor."""
    if isinstance(state, tuple):
        return tuple(map_state(part, function) for part in state)
    return None if state is None else function(state)


class Part(nn.Module):
    """A function of hidden states; B batch, T length, D width.

    Called with a state, a part reads the tokens as the continuation of those that the state remembers, and returns the
    state after them, so that a text gives the same outputs in chunks as in one piece. Without a state (in training) it
    remembers nothing. States are values: a part never changes or keeps one.
    """

    independent_rows: ClassVar[bool] = True
    """No row of a batch depends on another row, not even in training; false for a batch norm."""

    skips_padding: ClassVar[bool] = False
    """The part honours `context.row.padding_mask` after a state, too: padding before a row's first token leaves no
    trace in its outputs and states. Models with a part that does not do so read prompts of unlike lengths one by
    one."""
    matrices: ClassVar[tuple[str, ...] | None] = None
    """Names of the part's own parameters that map vectors to vectors, for optimizers like Muon; None: those with two
    dimensions (`matrices.py`). Parameters of modules inside the part are declared by these modules."""
    counts_tokens: ClassVar[bool] = False
    """The part's output depends on the number of tokens before, which neither its state nor its config tells."""
    adds: ClassVar[bool] = False
    """The part adds `context.beside` to its output, within its last product; parts without this get none."""
    chooses: ClassVar[bool] = False
    """The part computes the states at the positions `context.wanted` alone; parts without this get no positions."""

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'), and the state after the last token."""
        raise NotImplementedError

    @property
    def reads_packed(self) -> bool:
        """Whether the part reads packed rows; other parts get the rows spread out, with padding."""
        return False

    @property
    def memory_limit(self) -> int | None:
        """The longest memory in tokens, which the state reaches as a text goes on; None: it has no such bound."""
        return None

    @property
    def last_map(self) -> nn.Linear | None:
        """The linear layer that gives the part's output, by custom called `output`; None: no linear layer gives it."""
        output = self._modules.get("output")
        return output if isinstance(output, nn.Linear) else None

    def start(self, rows: int, like: Tensor) -> State:
        """The state before the first token of `rows` rows, of the type and on the device of `like`.

        It is None where nothing needs to be remembered.
        """
        return None

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        raise NotImplementedError

    def flops_per_query(self, length: int) -> int:
        """Floating-point operations of one row of a second stream, for which no keys and values are made."""
        return self.flops_per_token(length)

    def flops_per_pair(self) -> int:
        """Floating-point operations for one more token that a token sees, for parts that attend."""
        return 0

    def flops_per_source_token(self) -> int:
        """Floating-point operations for one token of the source, for parts that attend to a source."""
        return 0

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """The weights of a convolution's taps: (N, K), or (B, T, N, K) where every token has its own kernels.

        They are None where nothing is convolved.
        """
        return None

    def offsets(self) -> list[int]:
        """Distance of each tap of `kernels` from the output, in tokens; negative before it."""
        return []

    def reach(self) -> tuple[float, float]:
        """The largest numbers of tokens to the left and right on which an output depends: the outermost taps."""
        offsets = self.offsets() or [0]
        return -min(offsets), max(offsets)


def apply_part(part: Part, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
    """The output of a part; rows are spread out first for a part that cannot read packed ones."""
    packing = context.packing
    if packing is None or part.reads_packed:
        applied: tuple[Tensor, State] = part(x, context, state)
        return applied
    y, state = part(packing.spread(x), context._replace(packing=None), state)
    return packing.packed(y), state


class Wrapper(Part):
    """A part around another part, `function`, which has all of the state, the mixing of tokens and the counted cost."""

    def __init__(self, function: Part) -> None:
        super().__init__()
        self.function = function

    @property
    @override
    def reads_packed(self) -> bool:
        return True

    @property
    def skips_padding(self) -> bool:  # type: ignore[override]
        """Whether the function honours `context.row.padding_mask` after a state."""
        return self.function.skips_padding

    @override
    def start(self, rows: int, like: Tensor) -> State:
        return self.function.start(rows, like)

    @override
    def flops_per_token(self, length: int) -> int:
        return self.function.flops_per_token(length)

    @override
    def flops_per_query(self, length: int) -> int:
        return self.function.flops_per_query(length)

    @override
    def flops_per_pair(self) -> int:
        return self.function.flops_per_pair()

    @override
    def flops_per_source_token(self) -> int:
        return self.function.flops_per_source_token()

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """The kernels of the function inside, for the input that a subclass gives it."""
        return self.function.kernels(self.given(x), context)

    def given(self, x: Tensor) -> Tensor:
        """The input of the function: x, or a subclass's transform of it."""
        return x

    @override
    def offsets(self) -> list[int]:
        return self.function.offsets()

    @override
    def reach(self) -> tuple[float, float]:
        return self.function.reach()


def last_inputs(left: Tensor | None, x: Tensor) -> Tensor | None:
    """The state of a part that looks back S tokens: the last S of `left`, (B, S, D), followed by x, (B, T, D).

    It is None where nothing is remembered.
    """
    return None if left is None else torch.cat([left, x], dim=1)[:, x.shape[1] :]


def require_same_shapes(name: str, first: int, first_part: nn.Module, second: int, second_part: nn.Module) -> None:
    """Refuse parts of two layers that are to be one, and differ in the shapes of their tensors, as a `UserError`."""
    shapes = {key: tuple(value.shape) for key, value in first_part.state_dict().items()}
    others = {key: tuple(value.shape) for key, value in second_part.state_dict().items()}
    if shapes == others:
        return
    key = next(key for key in sorted(shapes | others) if shapes.get(key) != others.get(key))
    raise UserError(
        f"share: layers {first + 1} and {second + 1} cannot share their {name}, because {key} is "
        f"{shapes.get(key, 'absent')} in one and {others.get(key, 'absent')} in the other; share less or use groups"
    )


class ModelState(NamedTuple):
    """A model's memory between chunks of a text; a value, which reading on does not change unless it has `room`."""

    tokens: int
    """Number of tokens read so far."""
    layers: State
    """The state of the layers of the last stack."""
    source: Tensor | None = None
    """(B, U, D) the encoder's output."""
    source_mask: Tensor | None = None
    """(B, 1, 1, U) padding mask of the source, True for tokens."""
    gaps: Tensor | None = None
    """(B,) number of the `tokens` that are padding before each row's first one; None: none is."""
    room: int = 0
    """Number of tokens for whose keys and values memory is taken at once. The model may overwrite the state then, and
    writes the next keys and values after those of the state. 0: the state stays as it is, and they are copied."""


def chosen_rows(state: ModelState, rows: Tensor) -> ModelState:
    """The state with the rows that the (B,) indices name; a row may be named more than once."""
    source, mask, gaps = (
        None if each is None else each.index_select(0, rows) for each in (state.source, state.source_mask, state.gaps)
    )
    layers = map_state(state.layers, lambda tensor: tensor.index_select(0, rows))
    return state._replace(layers=layers, source=source, source_mask=mask, gaps=gaps)
