"""The trained module of a pre-training: the model and the heads of its objectives."""

from collections.abc import Collection
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from bakeoff.batching.batch import Batch
from bakeoff.learner.without_memory import without_memory
from bakeoff.models.inputs import Inputs
from bakeoff.models.model_state import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import (
    Generating,
    Objective,
    Prefixed,
    Sharing,
    TokenObjectiveConfig,
    TwoStream,
    row_lengths,
)
from bakeoff.recipe import Recipe


class PretrainingModel(nn.Module):
    """The model, whose hidden states are computed once, and the loss of each objective at the rows with its targets.

    Weights are fresh, from torch's global generator. B batch, T length, D width.
    """

    def __init__(self, recipe: Recipe, vocabulary: int) -> None:
        super().__init__()
        vocabulary += recipe.extra_tokens
        self.model = recipe.model.build(vocabulary)
        generators = {part.generator_learns: part.generator_model(recipe.model) for part in recipe.objective}
        self.objectives: tuple[Objective, ...] = tuple(
            part.build(generators.get(part.kind) or recipe.model, vocabulary) for part in recipe.objective
        )
        by_name = {objective.name: objective for objective in self.objectives}
        self.heads = nn.ModuleDict()
        for part, objective in zip(recipe.objective, self.objectives, strict=True):
            if part.head_of in by_name:
                objective.head = by_name[part.head_of].head
            else:
                self.heads[objective.name] = objective.head
                if isinstance(part, TokenObjectiveConfig):
                    objective.head.z_loss = part.z_loss
        self.generating = next((each for each in self.objectives if isinstance(each, Generating)), None)
        """The objective that has a generator; None: there is none."""
        self.generator = None if self.generating is None else self.generating.generator
        self.weights: dict[str, float] = {part.kind: part.weight for part in recipe.objective}
        self.predicts_tokens: dict[str, bool] = {part.kind: part.token_targets for part in recipe.objective}
        self.writing = next((part.kind for part in recipe.objective if part.writes), None)
        """The name of the objective that teaches the model to continue or write text; None: there is none."""
        self.reads_prefix = recipe.reads_prefix
        """The model sees the text that it is given to continue from both sides."""
        self.row_lengths = row_lengths(self.objectives, recipe.input.length)
        """Number of tokens of a full row's source, 0 where there is none, and of the row itself."""
        self._row_width = recipe.model.stack.output_width

    def compile_layers(self) -> None:
        """Compile the layers of the model, and those of a generator."""
        for each in (self.model, self.generator):
            if each is not None:
                each.compile_layers()

    def hidden(self, name: str, inputs: Inputs) -> Tensor:
        """(B, T, D) hidden states from which the objective of that name predicts."""
        if self.generating is None or name != self.generating.learns:
            hidden: Tensor = self.model(inputs)
        else:
            vectors = self.model.embedding.vectors(inputs.ids, inputs.segments)
            hidden = self.generating.generator(inputs._replace(vectors=vectors))
        return hidden

    def gather(self, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
        """The (N, D) hidden states of the rows that have a target, and the (N,) targets, by objective."""
        generated: dict[str, tuple[Tensor, Tensor]] = {}
        if self.generating is not None:
            batch, generated = self._generate(self.generating, batch)
        hidden = self.model(batch.inputs)
        return generated | self._gathered(hidden, batch)

    def _generate(self, own: Generating, batch: Batch) -> tuple[Batch, dict[str, tuple[Tensor, Tensor]]]:
        """The batch filled by the generator, and the rows and targets of the objective that the generator learns."""
        name = cast(Objective, own).name
        places, labels = batch.targets[own.learns]
        rows = self.hidden(own.learns, batch.inputs).flatten(0, 1).index_select(0, places)
        learnt = {own.learns: (rows, labels)}
        others = {key: value for key, value in batch.targets.items() if key != own.learns}
        drawn = others[name]
        ids = batch.ids
        if len(drawn[0]):  # it is trained now
            head = self._head(own.learns)
            with torch.no_grad():
                predicted = head.log_probabilities(rows, self.model.embedding.table)
            ids, made = own.replace(ids, (places, labels), predicted, drawn)
            others[name] = drawn[0], made
        return replace(batch, ids=ids, targets=others), learnt

    def _head(self, name: str) -> Head:
        return next(each.head for each in self.objectives if each.name == name)

    def gather_on(self, batch: Batch, state: ModelState) -> tuple[dict[str, tuple[Tensor, Tensor]], ModelState]:
        """`gather` for rows that continue from a state; also the state behind these rows."""
        hidden, after = self.model.extend(
            batch.ids, state, batch.segments, batch.queries, batch.advance, banded=False, backwards=batch.backwards
        )
        return self._gathered(hidden, batch), after

    def _gathered(self, hidden: Tensor, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
        hidden = self.rows(hidden)
        return {
            name: (hidden if len(rows) == len(hidden) else hidden.index_select(0, rows), labels)
            for name, (rows, labels) in batch.targets.items()
        }

    def rows(self, hidden: Tensor) -> Tensor:
        """(B, T, directions * D) hidden states to (B * T * directions, D), a row for each direction."""
        return hidden.flatten(0, 1).view(-1, self._row_width)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The loss of each objective, summed over its targets, in nats."""
        return self._losses(self.gather(batch))

    def forward_on(self, batch: Batch, state: ModelState) -> tuple[dict[str, Tensor], ModelState]:
        """`forward` for rows that continue from a state; also the state behind these rows."""
        gathered, after = self.gather_on(batch, state)
        return self._losses(gathered), after

    def _losses(self, gathered: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        table = self.model.embedding.table
        return {each.name: each.head.loss(*gathered[each.name], table) for each in self.objectives}

    def parameter_count(self) -> int:
        """Number of parameters, heads included, tied and shared ones once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def targets_per_token(self, idle: Collection[str] = ()) -> dict[str, float]:
        """Expected number of targets of each objective for each token of a row; `idle` objectives have none.

        An objective that takes a share of the rows for itself leaves only the rest to the other objectives.
        """
        trained = [objective for objective in self.objectives if objective.name not in idle]
        left = next((each.rows_left for each in trained if isinstance(each, Sharing)), 1.0)
        return {each.name: each.targets_per_token * (1.0 if isinstance(each, Sharing) else left) for each in trained}

    def flops_per_token(self, idle: Collection[str] = ()) -> int:
        """Floating-point operations of one token in training: forward, and twice as much backward.

        Objectives that are `idle` have no targets.
        """
        source_length, length = self.row_lengths
        trained = [objective for objective in self.objectives if objective.name not in idle]
        targets = self.targets_per_token(idle)
        heads = sum(objective.head.flops_per_row * targets[objective.name] for objective in trained)
        queries = sum(each.queries_per_token for each in trained if isinstance(each, TwoStream))
        ahead = sum(each.pairs_ahead(length) for each in trained if isinstance(each, Prefixed))
        row = self.model.row_flops(length, source_length, queries * length, ahead) + length * heads
        if self.generator is not None:
            row += self.generator.row_flops(length)
        return round(3 * row / (source_length + length))


def build_on_meta(recipe: Recipe, vocabulary: int) -> PretrainingModel:
    """The model on the meta device, without memory for its weights, to count them and check shapes.

    Raises:
        UserError: it has tensors of more than 2^63 bytes.
    """
    return without_memory(lambda: PretrainingModel(recipe, vocabulary), recipe.name)
