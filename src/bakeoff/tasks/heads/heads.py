"""Heads of tasks: a model, and linear layers from its hidden states to outputs for each row, or for each token."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.blocks.feed_forward import activate
from bakeoff.models.initialisation import initialise
from bakeoff.models.layer_map import model_sources
from bakeoff.objectives.heads import Head as ObjectiveHead
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.ops.dropout import dropout as drop
from bakeoff.recipe import Recipe
from bakeoff.row import Row, Source
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.layer_reading import LayerReading
from bakeoff.tasks.heads.transform import Transform, pretrained_transform, transform_of
from bakeoff.tasks.pooling import Pooling
from bakeoff.tensors import load_tensors


def pooled(hidden: Tensor, padding_mask: Tensor | None, pooling: Pooling, start_last: bool) -> Tensor:
    """(B, D) vectors of rows from (B, T, D) hidden states; padding has no effect.

    Args:
        hidden: the hidden states.
        padding_mask: (B, T) the padding mask, True for tokens; None: no padding.
        pooling: the state at [CLS], the mean or the maximum of all, or the state at the last token.
        start_last: whether [CLS] is the last token.
    """
    if padding_mask is None:
        padding_mask = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
    if pooling == "cls" and not start_last:
        return hidden[:, 0]
    if pooling in ("cls", "last"):
        rows = torch.arange(hidden.shape[0], device=hidden.device)  # no `len`, which is a constant to an exporter
        return hidden[rows, padding_mask.sum(1) - 1]
    outside = ~padding_mask[..., None]  # (B, T, 1)
    if pooling == "max":
        return hidden.masked_fill(outside, float("-inf")).amax(1)
    return hidden.masked_fill(outside, 0.0).sum(1) / padding_mask.sum(1, keepdim=True)


class HeadedModel(nn.Module):
    """A model and a head; the weights of both are fresh, from torch's global generator.

    A subclass makes the head, and computes the outputs of a batch in `forward`.
    """

    def __init__(self, recipe: Recipe, vocabulary: int) -> None:
        super().__init__()
        self.model = recipe.model.build(vocabulary + recipe.extra_tokens)
        if recipe.training.activation_checkpointing:
            self.model.recompute_layers()

    def read(self, batch: Any, language_model: bool = False) -> tuple[Tensor, Tensor | None]:
        """The outputs for a batch, and, if `language_model`, () the mean loss of the next token in its rows."""
        assert not language_model
        return self(batch), None

    def pretrained(self, names: Collection[str], recipe: Recipe) -> dict[str, str]:
        """The names of the run's tensors with which tensors of the head begin, by the names in the head.

        Args:
            names: the names of the run's tensors.
            recipe: the recipe of the run.
        """
        return {}


class LinearHead(HeadedModel):
    """A linear layer on the hidden states of a model; B rows, T length, D width of its input, K outputs."""

    def __init__(
        self, recipe: Recipe, vocabulary: int, outputs: int, config: FinetuneConfig, pooler: bool = False
    ) -> None:
        super().__init__(recipe, vocabulary)
        self.dropout = config.dropout
        self.start_last = recipe.input.start_last
        self.reads_both_sides = recipe.reads_both_sides
        self.reading = None if config.layers == 1 else LayerReading(recipe.model, config.layers)
        width = recipe.model.output_width * (1 if self.reading is None else self.reading.widths)
        self.pooler = nn.Linear(width, width) if pooler else None
        self.transform = (
            Transform(width, recipe.model.embedding_width, transform_of(recipe)) if config.transform else None
        )
        self.output = nn.Linear(recipe.model.embedding_width if config.transform else width, outputs)
        for part in (self.pooler, self.output):
            if part is not None:
                initialise(part)
        self.heads = nn.ModuleDict()
        """The head of the objective by which the model writes, if the next-token loss is learned as well; else
        empty."""
        if config.language_model:
            objective = writing_objective(recipe)
            self.heads[objective.kind] = objective.build(recipe.model, vocabulary + recipe.extra_tokens).head

    def forward(self, batch: Row[Tensor]) -> Tensor:
        """The outputs for a batch, float32: (B, K), or (B, T, K) where each token has its own."""
        return self.scores(self.hidden(batch), batch)

    def scores(self, hidden: Tensor, batch: Row[Tensor]) -> Tensor:
        """The outputs for a batch, float32, from its hidden states."""
        raise NotImplementedError

    def outputs(self, vectors: Tensor) -> Tensor:
        """(..., K) outputs of (..., D) vectors, float32, after the transform, if any, and dropout."""
        if self.transform is not None:
            vectors = self.transform(vectors)
        scores: Tensor = self.output(drop(vectors, self.dropout, self.training))
        return scores.float()

    def hidden(self, batch: Row[Tensor], wanted: Tensor | None = None) -> Tensor:
        """(B, T, D) hidden states, or (B, M, D) hidden states of the last layer at (B, M) wanted positions."""
        source = None
        if self.model.config.sequence_to_sequence:
            # An encoder and a decoder both read the text (Lewis et al. 2020, section 3.1); sources begin without [CLS].
            source = Source(batch.ids[:, 1:], None if batch.padding_mask is None else batch.padding_mask[:, 1:])
        # A decoder that has learnt prefixes reads the whole text as one, and so from both sides.
        prefix = None
        if self.reads_both_sides:
            prefix = (
                torch.full_like(batch.ids[:, 0], batch.ids.shape[1])
                if batch.padding_mask is None
                else batch.padding_mask.sum(1)
            )
        row = batch._replace(source=source, prefix=prefix, wanted=wanted)
        states: Tensor = self.model(row)[0] if self.reading is None else self.reading(self.model, row)
        return states

    @override
    def read(self, batch: Row[Tensor], language_model: bool = False) -> tuple[Tensor, Tensor | None]:
        hidden = self.hidden(batch)
        return self.scores(hidden, batch), self.language_model_loss(hidden, batch) if language_model else None

    def language_model_loss(self, hidden: Tensor, batch: Row[Tensor]) -> Tensor:
        """() the mean loss of the next token in the rows of a batch, in nats; padding is not predicted."""
        head = cast(ObjectiveHead, next(iter(self.heads.values())))
        predicted = torch.ones_like(batch.ids, dtype=torch.bool) if batch.padding_mask is None else batch.padding_mask
        predicted = predicted[:, 1:]
        rows, labels = hidden[:, :-1][predicted], batch.ids[:, 1:][predicted]
        return head.loss(rows, labels, self.model.embedding.weight) / len(labels)

    @override
    def pretrained(self, names: Collection[str], recipe: Recipe) -> dict[str, str]:
        """Names for the head of the writing objective, the pooler (from a sentence objective), and the transform.

        A pooler of several layers has no counterpart in pre-training.
        """
        state = self.state_dict()
        sources = {name: name for name in state if name.startswith("heads.") and name in names}
        if self.transform is not None:
            sources |= pretrained_transform(names, recipe)
        if self.pooler is None or self.reading is not None:
            return sources
        for prefix in ("pooler.", *(f"heads.{part.kind}.pooler." for part in recipe.objective)):
            sources |= {name.replace(prefix, "pooler."): name for name in names if name.startswith(prefix)}
        return sources


class RowHead(LinearHead):
    """W dropout(pool(h)); the pooling cls is a(W_p h) of [CLS], which stands first or last: BERT's pooler, a = tanh.

    With a transform, W dropout(transform(pool(h))), and cls is h of [CLS].
    """

    def __init__(self, recipe: Recipe, vocabulary: int, outputs: int, config: FinetuneConfig) -> None:
        super().__init__(recipe, vocabulary, outputs, config, pooler=config.pooling == "cls" and not config.transform)
        assert config.pooling != "auto"
        self.pooling: Pooling = config.pooling
        self.bend = config.pooler

    @override
    def forward(self, batch: Row[Tensor]) -> Tensor:
        """(B, K) outputs for the rows, float32.

        In evaluation, with the pooling cls or last, the last layer computes the pooled positions alone.
        """
        whole = self.training or self.reading is not None or self.pooling in ("mean", "max")
        if whole or torch.compiler.is_exporting():  # a graph would hold for one number of rows
            return super().forward(batch)
        last = (
            torch.full_like(batch.ids[:, 0], batch.ids.shape[1])
            if batch.padding_mask is None
            else batch.padding_mask.sum(1)
        )
        first = self.pooling == "cls" and not self.start_last
        positions = torch.zeros_like(last) if first else last - 1
        return self.outputs(self.through_pooler(self.hidden(batch, positions[:, None])[:, 0]))

    @override
    def scores(self, hidden: Tensor, batch: Row[Tensor]) -> Tensor:
        """(B, K) outputs for the rows, float32."""
        return self.outputs(self.pool(hidden, batch.padding_mask))

    def pool(self, hidden: Tensor, padding_mask: Tensor | None) -> Tensor:
        """(B, D) vectors of rows from (B, T, D) hidden states; padding has no effect."""
        return self.through_pooler(pooled(hidden, padding_mask, self.pooling, self.start_last))

    def through_pooler(self, vectors: Tensor) -> Tensor:
        """(B, D) vectors after the pooler, if there is one."""
        return vectors if self.pooler is None else bent(self.pooler(vectors), self.bend)


def bent(x: Tensor, activation: str) -> Tensor:
    """The tanh of x, or another activation of x."""
    return x.tanh() if activation == "tanh" else activate(x, activation)


class TokenTaskHead(LinearHead):
    """W dropout(h) of each token (Devlin et al. 2019, section 5.3), or W dropout(transform(h))."""

    @override
    def scores(self, hidden: Tensor, batch: Row[Tensor]) -> Tensor:
        """(B, T, K) outputs for the tokens, float32."""
        return self.outputs(hidden)


def build_head(
    kind: Literal["row", "tokens"], recipe: Recipe, vocabulary: int, outputs: int, config: FinetuneConfig
) -> HeadedModel:
    """The head with outputs for each row, or for each token; tokens need no pooling."""
    made: type[LinearHead] = RowHead if kind == "row" else TokenTaskHead
    return made(recipe, vocabulary, outputs, config)


def writing_objective(recipe: Recipe) -> ObjectiveConfig:
    """The objective by which a model that reads forwards predicts all tokens of a text.

    Raises:
        UserError: the model has none, and so no next-token loss on the texts of a task.
    """
    objective = next((part for part in recipe.objective if part.whole_text), None)
    if objective is None or recipe.model.encoder is not None or recipe.reads_both_sides:
        raise UserError(
            "language_model: the next token of a task's texts is learned by models that read forwards and predict all "
            f"tokens, as with the objective clm; {recipe.name} is none"
        )
    return objective


def transfer(head: HeadedModel, weights: Path, recipe: Recipe, keep: Collection[str] = (), output: bool = False) -> int:
    """Load a run's weights into a head's model, and into the head the weights that the run has for it.

    Args:
        head: the head with its model, which takes the weights.
        weights: the run's model.safetensors, of a pre-training or of a fine-tuning.
        recipe: the run's recipe; the head's may share fewer of its layers.
        keep: names of tensors of the head that stay as they are.
        output: whether the last linear layer is loaded, too, from a run that was fine-tuned to the same labels.

    Returns:
        The number of loaded tensors; each has been compared with the file's.

    Raises:
        UserError: the file lacks a tensor of the model, or one has another shape.
    """
    file = load_tensors(weights)
    with torch.device("meta"):
        pretrained = recipe.model.build(head.model.vocabulary)
    sources = model_sources(pretrained, head.model).items()
    tensors = {f"model.{name}": file[f"model.{source}"] for name, source in sources if f"model.{source}" in file}
    state = head.state_dict()
    tensors |= {name: file[source] for name, source in head.pretrained(file, recipe).items()}
    if output:
        tensors |= {name: file[name] for name in state if name in file and not name.startswith("model.")}
    # A head that reads other layers than the run's did has linear layers of another size, which begin anew.
    tensors = {
        n: t for n, t in tensors.items() if n.startswith("model.") or n not in state or t.shape == state[n].shape
    }
    for name in state:
        missing = name.startswith("model.") and name not in tensors
        if missing or (name in tensors and tensors[name].shape != state[name].shape):
            raise UserError(f"{weights}: {name} is missing or has another shape than recipe.yaml says")
    tensors = {name: tensor for name, tensor in tensors.items() if name not in keep}
    head.load_state_dict(tensors, strict=False)
    arrived = head.state_dict()
    # A transfer that silently does nothing is the worst bug that fine-tuning can have, so it is never taken on trust.
    assert all(torch.equal(arrived[name].cpu(), tensor) for name, tensor in tensors.items())
    return len(tensors)
