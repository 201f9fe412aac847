"""The trained module of a pre-training: the model and the heads of its objectives."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor, nn

from bakeoff.batching.batch import Batch
from bakeoff.learner.without_memory import without_memory
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Score, summed_loss
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
from bakeoff.row import Row, mapped


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
        self.writing = next((part.kind for part in recipe.objective if part.generates), None)
        """The name of the objective that teaches the model to continue or write text; None: there is none."""
        self.reads_prefix = recipe.reads_prefix
        """The model sees the text that it is given to continue from both sides."""
        self.row_lengths = row_lengths(self.objectives, recipe.input.length)
        """Number of tokens of a full row's source, 0 where there is none, and of the row itself."""
        self.scoring_weight: Tensor | None = None
        """(V, E) the embedding's weight in the type and the layout in which heads score by it; set where nothing is
        trained any more. None: they score by the weight itself."""
        self._row_width = recipe.model.stack.output_width
        if recipe.training.activation_checkpointing:
            self.recompute_layers()

    def compile_layers(self, replayed: bool = False) -> None:
        """Compile the layers of the model, and those of a generator; see `Model.compile_layers`."""
        for each in (self.model, self.generator):
            if each is not None:
                each.compile_layers(replayed)

    def recompute_layers(self) -> None:
        """Keep the inputs of the layers of the model, and of those of a generator, alone for the backward pass."""
        for each in (self.model, self.generator):
            if each is not None:
                each.recompute_layers()

    def forward(
        self,
        batch: Batch,
        state: ModelState | None = None,
        score: Score = summed_loss,
        scores: Mapping[str, Score] = MappingProxyType({}),
    ) -> tuple[dict[str, Any], ModelState | None]:
        """The heads' results for the rows that have a target, and the state after the batch where one is given.

        Training, validation and inference all come through here, so that whatever shards or replicates the weights can
        gather them before, and the table of tokens is read within.

        Args:
            batch: rows and the targets of objectives; an objective without an entry among them is left out.
            state: the state from which the rows continue; None: they stand alone.
            score: makes a result of an objective's rows and labels; by default their loss, summed, in nats.
            scores: other functions in its place, by the names of objectives.
        """
        targets = dict(batch.targets)
        gathered: dict[str, tuple[Tensor, Tensor]] = {}
        row = batch.row
        if self.generating is not None and self.generating.learns in targets:
            row, gathered = self._generate(self.generating, row, targets)
        after = None
        if targets or not gathered:
            if batch.apart is not None:
                hidden = self._read_apart(row, batch.apart)
            elif state is None:
                hidden, _ = self.model(row)
            else:  # padding stands after the end of a text, where nothing follows
                row = row._replace(padding_mask=None, documents=None)
                hidden, after = self.model(row, state, remembered=batch.advance, banded=False)
            gathered |= self._gathered(hidden, targets)
        embedding_weight = self.model.embedding.weight if self.scoring_weight is None else self.scoring_weight
        results = {}
        for each in self.objectives:
            of_this = scores.get(each.name, score)
            if each.name in batch.parts and of_this is summed_loss:
                results[each.name] = each.head.loss_of_parts(
                    *gathered[each.name], embedding_weight, batch.parts[each.name]
                )
            elif each.name in gathered:
                weighed = (batch.weights[each.name],) if each.name in batch.weights else ()
                results[each.name] = of_this(each.head, *gathered[each.name], embedding_weight, *weighed)
        return results, after

    def with_parts(self, batch: Batch) -> Batch:
        """A batch on the CPU that says, for heads that treat rows by their labels, which rows are of which kind."""
        heads = {each.name: each.head for each in self.objectives if each.name in batch.targets}
        found = {name: head.parts(batch.targets[name][1]) for name, head in heads.items()}
        return replace(batch, parts={name: parts for name, parts in found.items() if parts})

    def _read_apart(self, row: Row[Tensor], apart: tuple[Tensor, Tensor]) -> Tensor:
        """(B, T, D) the hidden states of rows of which some are read from both sides, the others causally."""
        alone = row._replace(causal=None, spans=None)
        kinds = [
            mapped(alone, partial(torch.index_select, dim=0, index=numbers))._replace(behind=behind)
            for numbers, behind in zip(apart, (False, True), strict=True)
        ]
        hidden = torch.cat([self.model(each)[0] for each in kinds])
        return hidden.index_select(0, torch.cat(apart).argsort())

    def _generate(
        self, generating: Generating, row: Row[Tensor], targets: dict[str, tuple[Tensor, Tensor]]
    ) -> tuple[Row[Tensor], dict[str, tuple[Tensor, Tensor]]]:
        """The row filled by the generator, and the rows and labels of the objective that the generator learns.

        This objective is removed from the targets, and the labels of the objective with the generator are made.
        """
        name = cast(Objective, generating).name
        positions, labels = targets.pop(generating.learns)
        vectors = self.model.embedding.vectors(row)
        hidden, _ = generating.generator(row._replace(vectors=vectors))
        rows = _at(hidden.flatten(0, 1), positions)
        drawn = targets.get(name)
        if drawn is not None and len(drawn[0]):  # it is trained now
            head = next(each.head for each in self.objectives if each.name == generating.learns)
            with torch.no_grad():
                predicted = head.log_probabilities(rows, self.model.embedding.weight)
            ids, made = generating.replace(row.ids, (positions, labels), predicted, drawn)
            targets[name] = drawn[0], made
            row = row._replace(ids=ids)
        return row, {generating.learns: (rows, labels)}

    def _gathered(self, hidden: Tensor, targets: dict[str, tuple[Tensor, Tensor]]) -> dict[str, tuple[Tensor, Tensor]]:
        """The (N, D) rows of hidden states at each objective's targets, and the (N,) labels."""
        # (B, T, directions * D) becomes (B * T * directions, D), a row for each direction.
        rows = hidden.flatten(0, 1).view(-1, self._row_width)
        return {name: (_at(rows, positions), labels) for name, (positions, labels) in targets.items()}

    def parameter_count(self) -> int:
        """Number of parameters, heads included, tied and shared ones once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def _trained(self) -> list[Objective]:
        """The objectives that have targets: those whose weight is not 0."""
        return [objective for objective in self.objectives if self.weights[objective.name] > 0]

    def targets_per_token(self) -> dict[str, float]:
        """Expected number of targets of each objective for each token of a row; one whose weight is 0 has none.

        An objective that takes a share of the rows for itself leaves only the rest to the other objectives.
        """
        trained = self._trained
        left = next((each.rows_left for each in trained if isinstance(each, Sharing)), 1.0)
        return {each.name: each.targets_per_token * (1.0 if isinstance(each, Sharing) else left) for each in trained}

    def flops_per_token(self) -> int:
        """Floating-point operations of one token in training: forward, and twice as much backward."""
        row = self._row_flops(self)
        if self.generator is not None:
            row += self.generator.row_flops(self.row_lengths[1])
        return round(3 * row / sum(self.row_lengths))

    def flops_of_reader(self, reader: "PretrainingModel") -> int:
        """Floating-point operations of a token where another model reads these rows, forward, with its heads."""
        return round(self._row_flops(reader) / sum(self.row_lengths))

    def _row_flops(self, reader: "PretrainingModel") -> float:
        """Operations of a full row of this model, forward, in a reader and in its heads at this model's targets."""
        source_length, length = self.row_lengths
        trained, targets = self._trained, self.targets_per_token()
        heads_of = {each.name: each.head for each in reader.objectives}
        heads = sum(heads_of[each.name].flops_per_row * targets[each.name] for each in trained if each.name in heads_of)
        queries = sum(each.queries_per_token for each in trained if isinstance(each, TwoStream))
        ahead = sum(each.pairs_ahead(length) for each in trained if isinstance(each, Prefixed))
        return reader.model.row_flops(length, source_length, queries * length, ahead) + length * heads


def _at(rows: Tensor, positions: Tensor) -> Tensor:
    """The rows at (N,) positions in rising order."""
    every = positions.shape[0] == rows.shape[0]  # no `len`, which is a constant to an exporter
    return rows if every else rows.index_select(0, positions)


def build_on_meta(recipe: Recipe, vocabulary: int) -> PretrainingModel:
    """The model on the meta device, without memory for its weights, to count them and check shapes.

    Raises:
        UserError: it has tensors of more than 2^63 bytes.
    """
    return without_memory(lambda: PretrainingModel(recipe, vocabulary), recipe.name)
