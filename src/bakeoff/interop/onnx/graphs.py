"""What is exported: modules whose inputs and outputs are tensors alone, and in which padding is always told.

Shapes: B batch, T length, D width, V vocabulary, K outputs of a head.
"""

from typing import NamedTuple, cast

from torch import Tensor, nn

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs
from bakeoff.tasks.heads.heads import LinearHead
from bakeoff.tasks.rows.batches import InputBatch

ROWS = "input_ids", "attention_mask", "token_type_ids"
"""Names of what a graph reads of rows: ids, 1 for tokens and 0 for padding, and the segment of each."""


class Input(NamedTuple):
    """A tensor that a graph reads."""

    name: str
    """Its name."""
    axes: tuple[int | str, ...]
    """The size of each axis; a name where it may have any: batch, length, past or source."""
    integer: bool = True
    """int64, else float32."""


class Graph(nn.Module):
    """A module to be exported."""

    inputs: list[Input]
    """The inputs, in the order of the arguments of forward."""
    outputs: list[tuple[str, tuple[str, ...]]]
    """The names of the outputs, each with the names of its axes."""


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


def row_inputs(segments: bool) -> list[Input]:
    """What is read of rows, (B, T) each."""
    return [Input(name, ("batch", "length")) for name in (ROWS if segments else ROWS[:2])]
