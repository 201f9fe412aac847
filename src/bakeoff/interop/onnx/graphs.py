"""Modules for export: inputs and outputs are tensors alone, and the padding mask is always given.

Shapes: B batch, T length, D width, V vocabulary, K outputs of a head.
"""

from typing import NamedTuple, cast

from torch import Tensor, nn

from bakeoff.batching.batch import asked_everywhere
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.heads import logits
from bakeoff.row import Row
from bakeoff.tasks.heads.heads import LinearHead

ROWS = "input_ids", "attention_mask", "token_type_ids"
"""Names of a graph's inputs: token ids, padding mask (1 for tokens, 0 for padding), and segments."""


class Input(NamedTuple):
    """An input tensor of a graph."""

    name: str
    """The name of the input."""
    axes: tuple[int | str, ...]
    """The size of each axis, or the name of a free axis: batch, length, past or source."""
    integer: bool = True
    """Whether the type is int64; false: float32."""


class Graph(nn.Module):
    """A module to be exported."""

    inputs: list[Input]
    """The inputs, in the order of the arguments of forward."""
    outputs: list[tuple[str, tuple[str, ...]]]
    """The name and the axes' names of each output."""


class OfHead(Graph):
    """A fine-tuned model: `logits` (B, K) of rows, or (B, T, K) of tokens."""

    def __init__(self, head: LinearHead, segments: bool, by_token: bool) -> None:
        super().__init__()
        self.head = head
        self.inputs = row_inputs(segments)
        self.outputs = [("logits", ("batch", "length", "outputs") if by_token else ("batch", "outputs"))]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """The logits of the head, float32."""
        return cast(Tensor, self.head(Row(input_ids, token_type_ids, attention_mask != 0)))


class OfEncoder(Graph):
    """A pre-trained encoder: `hidden_states` (B, T, D), and `logits` (B, T, V) if it learned to fill masks (mlm)."""

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
        """The hidden states of the last layer, and the logits if there is an mlm head."""
        row = Row(input_ids, token_type_ids, attention_mask != 0)
        hidden, _ = self.module.model(row)
        if not self.fills:
            return (hidden,)
        if self.module.generating is None:
            head = next(each.head for each in self.module.objectives if each.name == "mlm")
            scores = head.scores(hidden.flatten(0, 1), self.module.model.embedding.weight)
        else:  # ELECTRA's masks are filled by the generator
            scores = self.module(asked_everywhere(row, "mlm"), score=logits)[0]["mlm"]
        return hidden, scores.unflatten(0, (input_ids.shape[0], input_ids.shape[1]))


def row_inputs(segments: bool) -> list[Input]:
    """The inputs of rows, each (B, T); `segments` adds `token_type_ids`."""
    return [Input(name, ("batch", "length")) for name in (ROWS if segments else ROWS[:2])]
