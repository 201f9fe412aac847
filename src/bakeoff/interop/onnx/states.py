"""The state of a model that generates text, as input and output tensors of a graph.

Shapes: B batch, T tokens of a chunk, R tokens read before it, M length of a limited memory, D width, W window.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.models.context import Context
from bakeoff.models.mixers.attention import Attention
from bakeoff.models.mixers.cross_attention import CrossAttention
from bakeoff.models.mixers.relative_attention import RelativeAttention
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState, Part, State, Wrapper
from bakeoff.row import Row

Axes = tuple[int | str, ...]
"""The size of each axis of a tensor, or the name of a free axis."""


class StateTensors:
    """The state of a causal model as a list of tensors.

    A memory with a limit always has its full length M, of which the last R positions are filled: a memory that grows
    up to its limit would change its shape in a way that a graph cannot express.

    Args:
        model: the model; it is changed so that its memories have their full length.
        where: the run's path, for errors.

    Raises:
        UserError: the first state is not zero, or a part of it grows up to a limit.
    """

    def __init__(self, model: Model, where: str) -> None:
        self.model = model
        _with_whole_memories(model, where)
        self.cross = [part for layer in model.stack.layers for each in layer if (part := source_reader(each))]
        """The cross-attention modules, in the order of the layers."""
        self._begun = self._start()
        begun = _tensors(self._begun)
        if any(bool(each.any()) for each in begun):
            raise UserError(f"{where}: begins with a state that is not of zeros, which is not written as ONNX")
        self.axes = self._growing(begun, where)
        """The axes of each tensor: batch, then sizes, or `past` for the axis that grows with the tokens read."""
        self.length_input = next(
            ((index, axes.index("past")) for index, axes in enumerate(self.axes) if "past" in axes), None
        )
        """The index and axis of a tensor whose size is the number of tokens read; None: there is no such tensor."""

    def filled(self, read: int, tensors: list[Tensor], sources: list[Tensor], source_mask: Tensor | None) -> ModelState:
        """The state after R tokens.

        Args:
            read: R, the number of tokens read.
            tensors: the tensors of the state.
            sources: keys and values of the source for each cross-attention module.
            source_mask: (B, 1, 1, U) True for tokens of the source, U their number.
        """
        following, of_source = iter(tensors), iter(sources)
        layers = tuple(
            tuple(
                (next(of_source), next(of_source)) if source_reader(part) else _filled(state, following.__next__)
                for part, state in zip(layer, remembered, strict=True)
            )
            for layer, remembered in zip(self.model.stack.layers, self._begun, strict=True)
        )
        return ModelState(read, layers, None, source_mask)

    def tensors(self, state: ModelState) -> list[Tensor]:
        """The tensors of a state, without keys and values of the source."""
        assert isinstance(state.layers, tuple)
        tensors: list[Tensor] = []
        for layer, remembered in zip(self.model.stack.layers, state.layers, strict=True):
            assert isinstance(remembered, tuple)
            for part, memory in zip(layer, remembered, strict=True):
                tensors += [] if source_reader(part) else _tensors(memory)
        return tensors

    def needs_count(self) -> bool:
        """Whether the model needs the number of tokens read, and no tensor of the state has it as a size.

        Positions need it, a memory that is not yet filled, and the windows of genCNN.
        """
        config = self.model.config
        positions = config.embedding.positions != "none" or any(mixer.counts_positions for mixer in config.mixers)
        counts = any(part.counts_tokens or part.memory_limit is not None for part in _parts(self.model))
        return counts or (positions and self.length_input is None)

    def _start(self) -> tuple[tuple[State, ...], ...]:
        begun = self.model.start(1).layers
        assert isinstance(begun, tuple)
        return begun  # type: ignore[return-value]

    @torch.no_grad()
    def _growing(self, begun: list[Tensor], where: str) -> list[Axes]:
        """The axes of each tensor, found by reading up to 64 tokens."""
        read = min(self.model.config.longest_input or 64, 64)
        sources = [torch.zeros(1, part.heads, 1, width) for part in self.cross for width in part.widths]
        state = self.filled(0, begun, sources, None)
        _, after = self.model(Row(torch.zeros(1, read, dtype=torch.int64)), state)
        all_axes: list[Axes] = []
        for first, then in zip(begun, self.tensors(after), strict=True):
            axes: list[int | str] = ["batch"]
            for one, other in zip(first.shape[1:], then.shape[1:], strict=True):
                if one != other and (one, other) != (0, read):
                    raise UserError(f"{where}: remembers something that grows up to a limit; --to hf can take it")
                axes.append(one if one == other else "past")
            all_axes.append(tuple(axes))
        return all_axes


def source_reader(part: nn.Module) -> CrossAttention | None:
    """The cross-attention inside a part of a layer; None: it has none."""
    while isinstance(part, Wrapper):
        part = part.function
    return part if isinstance(part, CrossAttention) else None


def _tensors(state: State) -> list[Tensor]:
    """The tensors of a tree of tuples, in order."""
    if isinstance(state, tuple):
        return [tensor for part in state for tensor in _tensors(part)]
    return [] if state is None else [state]


def _filled(tree: State, following: Callable[[], Tensor]) -> State:
    """The tree with its tensors replaced by those of `following`, in order."""
    if isinstance(tree, tuple):
        return tuple(_filled(part, following) for part in tree)
    return None if tree is None else following()


def _parts(model: Model) -> Iterator[Part]:
    """The parts of a model's layers, and the parts inside them."""
    return (part for part in model.stack.modules() if isinstance(part, Part))


def _with_whole_memories(model: Model, where: str) -> None:
    """Have parts with a limited memory start with its full length, and mask the positions that are not filled.

    Raises:
        UserError: there is no way for a part to do so.
    """
    for part in _parts(model):
        limit = part.memory_limit
        if limit is None:
            continue
        if isinstance(part, Attention):
            object.__setattr__(part, "start", partial(_whole_window, part, limit))
            object.__setattr__(part, "forward", partial(_within_window, part, limit))
        elif isinstance(part, RelativeAttention):
            object.__setattr__(part, "start", partial(_whole_memory, part, limit))
            object.__setattr__(part, "_mask", partial(_of_memory, limit))
        else:
            raise UserError(
                f"{where}: {type(part).__name__} remembers the last {limit:,} tokens, which is not written as ONNX; "
                "--to hf can take it"
            )


def _whole_window(part: Attention, window: int, rows: int, like: Tensor) -> State:
    """Zeros for the keys and values of the window, and the left context of a convolution, if any."""
    keys, values, *left = _tensors(Attention.start(part, rows, like))
    return tuple([F.pad(each, (0, 0, window, 0)) for each in (keys, values)] + left)


def _within_window(
    part: Attention, window: int, x: Tensor, context: Context, state: State = None
) -> tuple[Tensor, State]:
    """(B, T, D) attention for (B, T, D) inputs, which see W remembered tokens and each other."""
    if state is None:
        return Attention.forward(part, x, context)
    mask = _of_memory(window, context, x.shape[1], window, x.device)[None, None]
    bias = None if context.attention_bias is None else F.pad(context.attention_bias, (window, 0))
    return Attention.forward(part, x, context._replace(attention_mask=mask, attention_bias=bias), state)


def _whole_memory(part: RelativeAttention, memory: int, rows: int, like: Tensor) -> State:
    """An empty memory: (B, M, D) zeros."""
    return like.new_zeros(rows, memory, part.output.out_features)


def _of_memory(limit: int, context: Context, length: int, remembered: int, device: torch.device) -> Tensor:
    """(T, M + T) attention mask: a token sees itself and at most `limit` tokens before it that have been read."""
    keys = torch.arange(remembered + length, device=device)
    distances = keys - remembered - torch.arange(length, device=device)[:, None]
    return (distances <= 0) & (distances >= -limit) & (keys >= remembered - context.start)
