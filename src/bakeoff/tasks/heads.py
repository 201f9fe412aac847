"""Heads: a model, and a map of its hidden states, as a linear one of one vector for each row, or of each token's."""

from collections.abc import Collection
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.initialisation import initialise
from bakeoff.models.inputs import Inputs, Source
from bakeoff.models.layer_map import model_sources
from bakeoff.ops.dropout import dropout as drop
from bakeoff.recipe import Recipe
from bakeoff.tasks.batches import InputBatch
from bakeoff.tensors import load_tensors

Pooling = Literal["cls", "mean", "max", "last"]


def natural_pooling(recipe: Recipe) -> Pooling:
    """The pooling that pre-training prepared a model for.

    cls where an objective of sentence pairs has trained the first position, last for a causal model, whose last
    position alone has seen everything, or alone has predicted anything where the rest is a prefix, mean otherwise, as
    for a causal model that has read rows from both sides.
    """
    if recipe.model.causal and not any(part.reads_rows for part in recipe.objective):
        return "last"
    return "cls" if any(part.relates_segments for part in recipe.objective) else "mean"


class Head(nn.Module):
    """A model and a head, whose weights are fresh, from torch's global generator.

    A subclass makes the head, and the numbers of a batch in `forward`.
    """

    def __init__(self, recipe: Recipe, vocabulary: int) -> None:
        super().__init__()
        self.model = recipe.model.build(vocabulary + recipe.extra_tokens)

    def pretrained(self, names: Collection[str], recipe: Recipe) -> dict[str, str]:
        """For each tensor of the head that pre-training has made, its name among those of the run.

        Args:
            names: the run's tensors.
            recipe: the run's.
        """
        return {}


class LinearHead(Head):
    """A linear map of the model's hidden states; B rows, T length, D width, K outputs."""

    def __init__(self, recipe: Recipe, vocabulary: int, outputs: int, dropout: float, pooler: bool = False) -> None:
        super().__init__(recipe, vocabulary)
        self.dropout = dropout
        self.start_last = recipe.input.start_last
        self.reads_both_sides = recipe.reads_both_sides
        width = recipe.model.output_width
        self.pooler = nn.Linear(width, width) if pooler else None
        self.output = nn.Linear(width, outputs)
        for part in (self.pooler, self.output):
            if part is not None:
                initialise(part)

    def hidden(self, batch: InputBatch) -> Tensor:
        """(B, T, D) hidden states."""
        source = None
        if self.model.config.sequence_to_sequence:
            # An encoder and a decoder both read the text (Lewis et al. 2020, section 3.1); sources begin without [CLS].
            source = Source(batch.ids[:, 1:], None if batch.real is None else batch.real[:, 1:])
        # A decoder that has learnt to sees the text from both sides, as a prefix behind which there is nothing.
        prefix = None
        if self.reads_both_sides:
            prefix = torch.full_like(batch.ids[:, 0], batch.ids.shape[1]) if batch.real is None else batch.real.sum(1)
        states: Tensor = self.model(Inputs(batch.ids, batch.segments, batch.real, source=source, prefix=prefix))
        return states

    @override
    def pretrained(self, names: Collection[str], recipe: Recipe) -> dict[str, str]:
        """The pooler is that of a sentence head."""
        found: dict[str, str] = {}
        for part in recipe.objective if self.pooler is not None else ():
            prefix = f"heads.{part.kind}.pooler."
            found |= {name.replace(prefix, "pooler."): name for name in names if name.startswith(prefix)}
        return found


class RowHead(LinearHead):
    """W dropout(pool(h)); the pooling cls is tanh(W_p h), BERT's pooler, of [CLS], which stands first or last."""

    def __init__(self, recipe: Recipe, vocabulary: int, pooling: Pooling, outputs: int, dropout: float) -> None:
        super().__init__(recipe, vocabulary, outputs, dropout, pooler=pooling == "cls")
        self.pooling = pooling

    def forward(self, batch: InputBatch) -> Tensor:
        """(B, K) numbers for each row, float32."""
        pooled = drop(self.pool(self.hidden(batch), batch.real), self.dropout, self.training)
        scores: Tensor = self.output(pooled)
        return scores.float()

    def pool(self, hidden: Tensor, real: Tensor | None) -> Tensor:
        """(B, T, D) hidden states to (B, D), whatever stands at padding."""
        if real is None:
            real = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
        last = hidden[torch.arange(len(hidden), device=hidden.device), real.sum(1) - 1]
        if self.pooler is not None:
            return cast(Tensor, self.pooler(last if self.start_last else hidden[:, 0]).tanh())
        if self.pooling == "last":
            return last
        outside = ~real[..., None]  # (B, T, 1)
        if self.pooling == "max":
            return hidden.masked_fill(outside, float("-inf")).amax(1)
        return hidden.masked_fill(outside, 0.0).sum(1) / real.sum(1, keepdim=True)


class TokenHead(LinearHead):
    """W dropout(h) of each token (Devlin et al. 2019, section 5.3)."""

    def forward(self, batch: InputBatch) -> Tensor:
        """(B, T, K) numbers for each token, float32."""
        scores: Tensor = self.output(drop(self.hidden(batch), self.dropout, self.training))
        return scores.float()


def build_head(
    kind: Literal["row", "tokens"], recipe: Recipe, vocabulary: int, pooling: Pooling, outputs: int, dropout: float
) -> Head:
    """The head that gives numbers for each row, or for each token, whose vectors no pooling makes."""
    if kind == "tokens":
        return TokenHead(recipe, vocabulary, outputs, dropout)
    return RowHead(recipe, vocabulary, pooling, outputs, dropout)


def transfer(head: Head, weights: Path, recipe: Recipe) -> int:
    """Put the pre-trained weights into a head's model, and into the head those that pre-training has made for it.

    Args:
        head: where they go.
        weights: the run's model.safetensors.
        recipe: the run's recipe; the head's may share fewer of its layers.

    Returns:
        How many tensors were taken; each has been compared with the file's.

    Raises:
        UserError: the file lacks a tensor of the model, or one has another shape.
    """
    file = load_tensors(weights)
    with torch.device("meta"):
        pretrained = recipe.model.build(len(head.model.embedding.table))
    sources = model_sources(pretrained, head.model).items()
    found = {f"model.{name}": file[f"model.{source}"] for name, source in sources if f"model.{source}" in file}
    found |= {name: file[source] for name, source in head.pretrained(file, recipe).items()}
    own = head.state_dict()
    for name in own:
        missing = name.startswith("model.") and name not in found
        if missing or (name in found and found[name].shape != own[name].shape):
            raise UserError(f"{weights}: {name} is missing or has another shape than recipe.yaml says")
    head.load_state_dict(found, strict=False)
    arrived = head.state_dict()
    # A transfer that silently does nothing is the worst bug that fine-tuning can have, so it is never taken on trust.
    assert all(torch.equal(arrived[name].cpu(), tensor) for name, tensor in found.items())
    return len(found)
