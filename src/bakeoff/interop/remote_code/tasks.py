"""Models with a task head: for rows, tokens, answers in a context, and choices.

Shapes: B batch, T length, D width, K outputs, C choices.
"""

from typing import Any, cast

import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from bakeoff.interop.remote_code.base import BakeoffConfig, BakeoffModel, BakeoffPreTrainedModel, arranged
from bakeoff.objectives.heads import HeadTransform
from bakeoff.ops.dropout import dropout
from bakeoff.tasks.heads.heads import bent, pooled
from bakeoff.tasks.heads.layer_reading import LayerReading
from bakeoff.tasks.heads.transform import Transform


class TaskModel(BakeoffPreTrainedModel):
    """A model with a linear layer on its hidden states."""

    def __init__(self, config: BakeoffConfig, outputs: int, pooler: bool) -> None:
        super().__init__(config)
        self.model = BakeoffModel(config)
        head = config.task_head
        self.rate: float = head.get("dropout", 0.1)
        self.bend: str = head.get("pooler", "tanh")
        layers = head.get("layers", 1)
        network = self.model.network.config
        self.reading = None if layers == 1 else LayerReading(network, layers)  # type: ignore[arg-type]
        width = network.output_width * (1 if self.reading is None else self.reading.widths)
        self.pooler = nn.Linear(width, width) if pooler else None
        settings: dict[str, Any] | None = head.get("transform")
        table = width if settings is None else network.embedding_width
        self.transform = None if settings is None else Transform(width, table, HeadTransform(**settings))
        self.output = nn.Linear(table, outputs)
        self.post_init()

    def states(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None, pooling: str | None = None) -> Tensor:
        """(B, T, D) hidden states at the tokens' original positions, or with a `pooling` (B, D) vectors of rows."""
        rows = arranged(ids, mask, segments)
        row, network = self.model.inputs(rows), self.model.network
        hidden: Tensor = network(row)[0] if self.reading is None else self.reading(network, row)
        if pooling is None:
            return rows.restored(hidden)
        vectors = pooled(hidden, rows.padding_mask, cast(Any, pooling), self.config.start_token == "last")
        return vectors if self.pooler is None else bent(self.pooler(vectors), self.bend)

    def given(self, states: Tensor) -> Tensor:
        """The outputs (..., K) of the linear layer for (..., D) states, after the transform, if any, and dropout."""
        states = states if self.transform is None else self.transform(states)
        return cast(Tensor, self.output(dropout(states, self.rate, self.training)))


class RowModel(TaskModel):
    """A head of rows: W dropout(pool(h)); without transform the pooling cls is a(W_p h) at [CLS], BERT's with tanh."""

    def __init__(self, config: BakeoffConfig, outputs: int) -> None:
        self.pooling: str = config.task_head.get("pooling", "mean")
        super().__init__(config, outputs, self.pooling == "cls" and config.task_head.get("transform") is None)

    def row_scores(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None) -> Tensor:
        """(B, T) ids, mask and segments to (B, K) outputs."""
        return self.given(self.states(ids, mask, segments, self.pooling))


class BakeoffForSequenceClassification(RowModel):
    """Classification, multilabel classification and regression of rows."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config, config.num_labels)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """(B, T) ids to (B, K) logits or values; `problem_type` decides what labels are, by default classes (B,)."""
        logits = self.row_scores(input_ids, attention_mask, token_type_ids)
        loss = None
        if labels is not None:
            kind = self.config.problem_type or ("regression" if self.config.num_labels == 1 else "classes")
            if kind == "regression":
                loss = F.mse_loss(logits.float().flatten(), labels.float().flatten())
            elif kind == "multi_label_classification":
                loss = F.binary_cross_entropy_with_logits(logits.float(), labels.float())
            else:
                loss = F.cross_entropy(logits.float(), labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class BakeoffForMultipleChoice(RowModel):
    """Choice among texts."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config, 1)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> MultipleChoiceModelOutput:
        """(B, C, T) ids of the context with each choice to (B, C) logits; labels (B,) are numbers of choices."""
        count = input_ids.shape[1]
        flat = [None if each is None else each.flatten(0, 1) for each in (attention_mask, token_type_ids)]
        logits = self.row_scores(input_ids.flatten(0, 1), *flat).view(-1, count)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels)
        return MultipleChoiceModelOutput(loss=loss, logits=logits)


class BakeoffForTokenClassification(TaskModel):
    """Tagging of tokens."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config, config.num_labels, False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> TokenClassifierOutput:
        """(B, T) ids to (B, T, K) logits; labels (B, T) are -100 at positions without a target."""
        logits = self.given(self.states(input_ids, attention_mask, token_type_ids))
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return TokenClassifierOutput(loss=loss, logits=logits)


class BakeoffForQuestionAnswering(TaskModel):
    """Answers in a context: logits of each token as the beginning and as the end of the answer."""

    def __init__(self, config: BakeoffConfig) -> None:
        super().__init__(config, 2, False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **_: Any,
    ) -> QuestionAnsweringModelOutput:
        """(B, T) ids to (B, T) logits of beginnings and of ends; positions (B,) outside of the row give no loss."""
        start, end = self.given(self.states(input_ids, attention_mask, token_type_ids)).unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            length = input_ids.shape[1]
            losses = [
                F.cross_entropy(scores.float(), positions.clamp(0, length), ignore_index=length)
                for scores, positions in ((start, start_positions), (end, end_positions))
            ]
            loss = (losses[0] + losses[1]) / 2
        return QuestionAnsweringModelOutput(loss=loss, start_logits=start, end_logits=end)
