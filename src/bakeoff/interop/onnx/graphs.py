"""What is exported: modules whose inputs and outputs are tensors alone, and in which padding is always told.

Shapes: B batch, T length, P tokens that a state remembers, D width, V vocabulary, K outputs of a head.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs
from bakeoff.models.model import ModelState
from bakeoff.models.part import State
from bakeoff.tasks.heads.heads import LinearHead
from bakeoff.tasks.rows.batches import InputBatch

ROWS = "input_ids", "attention_mask", "token_type_ids"
"""Names of what a graph reads of rows: ids, 1 for tokens and 0 for padding, and the segment of each."""


class Input(NamedTuple):
    """A tensor that a graph reads."""

    name: str
    """Its name."""
    axes: tuple[int | str, ...]
    """The size of each axis; a name where it may have any: batch, length or past."""
    integer: bool = True
    """int64, else float32."""


class Graph(nn.Module):
    """A module to be exported."""

    inputs: list[Input]
    """What it reads, in the order of its arguments."""
    outputs: list[tuple[str, tuple[str, ...]]]
    """What it gives: names, and those of the axes."""


class OfHead(Graph):
    """A fine-tuned model: (B, K) `logits` of rows, or (B, T, K) of tokens."""

    def __init__(self, head: LinearHead, segments: bool, by_token: bool) -> None:
        super().__init__()
        self.head = head
        self.inputs = row_inputs(segments)
        self.outputs = [("logits", ("batch", "length", "outputs") if by_token else ("batch", "outputs"))]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """The head's numbers, float32."""
        return cast(Tensor, self.head(InputBatch(input_ids, token_type_ids, attention_mask != 0)))


class OfEncoder(Graph):
    """A pre-trained encoder: (B, T, D) `hidden_states`, and (B, T, V) `logits` where it has learnt to fill masks."""

    def __init__(self, module: PretrainingModel, segments: bool) -> None:
        super().__init__()
        self.module = module
        self.fills = "mlm" in module.weights
        self.inputs = row_inputs(segments)
        self.outputs = [("hidden_states", ("batch", "length", "width"))]
        if self.fills:
            self.outputs.append(("logits", ("batch", "length", "vocabulary")))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The states of the last layer, and the scores of every token of the vocabulary."""
        inputs = Inputs(input_ids, token_type_ids, attention_mask != 0)
        hidden: Tensor = self.module.model(inputs)
        if not self.fills:
            return (hidden,)
        # ELECTRA's masks are filled by the generator.
        of_masks = hidden if self.module.generating is None else self.module.hidden("mlm", inputs)
        head = next(each.head for each in self.module.objectives if each.name == "mlm")
        return hidden, head.scores(of_masks.flatten(0, 1), self.module.model.embedding.table).unflatten(
            0, (input_ids.shape[0], input_ids.shape[1])
        )


class OfCausal(Graph):
    """A pre-trained causal model: (B, T, V) `logits` of the next tokens, and what it remembers behind the last.

    A text begins with a state of zeros, of no token where it remembers all; each call gives the state of the next.
    """

    def __init__(self, module: PretrainingModel, where: str) -> None:
        super().__init__()
        assert module.writing is not None
        self.module = module
        self.writer = next(each.head for each in module.objectives if each.name == module.writing)
        self.tree = module.model.start(1).layers
        begun = _tensors(self.tree)
        if any(bool(each.any()) for each in begun):
            raise UserError(f"{where}: begins with a state that is not of zeros, which is not written as ONNX")
        self.states = [Input(f"past.{place}", axes, False) for place, axes in enumerate(_growing(module, begun, where))]
        self._past = next(
            ((place, own.axes.index("past")) for place, own in enumerate(self.states) if "past" in own.axes), None
        )
        if self._past is None and _tells_positions(module):
            raise UserError(
                f"{where}: its state does not tell how many tokens it has read, and its positions need that; ONNX is "
                "not written of it, but --to hf is"
            )
        self.inputs = [Input("input_ids", ("batch", "length")), *self.states]
        self.outputs = [("logits", ("batch", "length", "vocabulary"))]
        # What a state has grown by is another axis than what it was.
        present = [tuple("total" if axis == "past" else str(axis) for axis in own.axes) for own in self.states]
        self.outputs += [(f"present.{place}", axes) for place, axes in enumerate(present)]

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """The scores of every token of the vocabulary, and the state behind the last token."""
        read = 0 if self._past is None else past[self._past[0]].shape[self._past[1]]
        state = ModelState(read, _filled(self.tree, iter(past).__next__), None, None)
        hidden, after = self.module.model.extend(input_ids, state)
        scores = self.writer.scores(hidden.flatten(0, 1), self.module.model.embedding.table)
        logits = scores.unflatten(0, (input_ids.shape[0], input_ids.shape[1]))
        return logits, *_tensors(after.layers)


def row_inputs(segments: bool) -> list[Input]:
    """What is read of rows, (B, T) each."""
    return [Input(name, ("batch", "length")) for name in (ROWS if segments else ROWS[:2])]


def _tensors(state: State) -> list[Tensor]:
    """The tensors of a tree, in their order."""
    if isinstance(state, tuple):
        return [tensor for part in state for tensor in _tensors(part)]
    return [] if state is None else [state]


def _filled(tree: State, following: Callable[[], Tensor]) -> State:
    """The same tree with other tensors in their order."""
    if isinstance(tree, tuple):
        return tuple(_filled(part, following) for part in tree)
    return None if tree is None else following()


@torch.no_grad()
def _growing(module: PretrainingModel, begun: list[Tensor], where: str) -> list[tuple[int | str, ...]]:
    """The axes of each tensor of a state: what follows the rows is as it is, or grows with the tokens that are read.

    Raises:
        UserError: something grows up to a limit.
    """
    limited = UserError(
        f"{where}: remembers a window that grows up to a limit, which is not written as ONNX; --to hf is"
    )
    mixers = module.model.config.mixers
    if any(getattr(mixer, name, None) is not None for mixer in mixers for name in ("memory", "window")):
        raise limited
    read = min(module.model.config.longest_input or 64, 64)
    _, after = module.model.extend(torch.zeros(1, read, dtype=torch.int64), module.model.start(1))
    found: list[tuple[int | str, ...]] = []
    for first, then in zip(begun, _tensors(after.layers), strict=True):
        axes: list[int | str] = ["batch"]
        for one, other in zip(first.shape[1:], then.shape[1:], strict=True):
            if one != other and (one, other) != (0, read):
                raise limited
            axes.append(one if one == other else "past")
        found.append(tuple(axes))
    return found


def _tells_positions(module: PretrainingModel) -> bool:
    """Whether the place of a token in its text matters beside what stands before it."""
    config = module.model.config
    mixers: list[Any] = list(config.mixers)
    return config.embedding.positions != "none" or any(
        getattr(mixer, "positions", "none") != "none" for mixer in mixers
    )
