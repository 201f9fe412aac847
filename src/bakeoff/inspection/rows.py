"""Rows of batches in readable form: text, targets, relation of segments, and padding."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.batch import Batch
from bakeoff.config import Config
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.objective import Objective, ObjectiveConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.pieces import Speller, TargetRun, TokenRun
from bakeoff.tokenizer.tokenizer import Tokenizer


class RowText(Config):
    """The stretch of a row that belongs to one text."""

    name: str
    """The name of the text: input; A and B for segments, and before them reused, which the next row remembers;
    document 1, 2, ... if there are several; context, or context 1, 2, ..., for text without targets; prefix, or
    prefix 1, 2, ..., for tokens that attend to each other in both directions; source and target of a
    sequence-to-sequence model, where the target is the decoder's input with the last token to be written."""
    pieces: list[TokenRun]
    """The runs of tokens of the text, in order."""


class Row(Config):
    """A row as a model is trained on it."""

    number: int
    """The number of the row among the shown rows, from 1 on."""
    length: int
    """T, number of positions, padding included."""
    tokens: int
    """Number of tokens, without padding."""
    source_length: int
    """U, number of positions of the source, padding included; 0: there is no source."""
    source_tokens: int
    """Number of tokens of the source, without padding."""
    targets: dict[str, int]
    """Number of predictions for single tokens by objective; with two directions those of both."""
    relations: dict[str, str]
    """The relation of the segments, for the user, by the objective that predicts it."""
    classes: dict[str, dict[str, int]]
    """Number of positions of each class, by the objective that predicts classes of single tokens."""
    backwards: bool
    """Whether the row reads the text from its end."""
    both_sides: bool | None
    """Whether a model that is otherwise causal attends in both directions in this row; None: it never does."""
    follows: bool | None
    """Whether B continues A in the order of reading; None: `relations` says it, or there is no choice."""
    lines: list[RowText]
    """The texts of the row, without padding, in the order of reading."""


class RowReader:
    """Reader of rows in batches. Shapes: T length, U length of the source, P rows of a second stream.

    Args:
        recipe: the recipe of the batches.
        objectives: the objectives of the recipe.
        tokenizer: the tokenizer of the corpus.
    """

    def __init__(self, recipe: Recipe, objectives: Sequence[Objective], tokenizer: Tokenizer) -> None:
        self.recipe, self.objectives = recipe, objectives
        self.speller = Speller(tokenizer)

    def read(self, batch: Batch, index: int, number: int) -> Row:
        """The row `index` of a batch or micro-batch; `number` becomes the row's number."""
        ids: list[int] = batch.row.ids[index].tolist()
        documents = np.ones(len(ids), np.int64)
        if batch.row.documents is not None:
            documents = batch.row.documents[index].numpy()
        elif batch.row.padding_mask is not None:
            documents = batch.row.padding_mask[index].numpy().astype(np.int64)
        tokens = int((documents > 0).sum())
        segments = None if batch.row.segments is None else batch.row.segments[index, :tokens].numpy()
        source, source_length = self._source(batch, index)
        backwards = batch.row.backwards is not None and bool(batch.row.backwards[index])
        marks: dict[int, TargetRun] = {}
        context = self.recipe.input.remembered_tokens
        prefix = None if batch.row.prefix is None else int(batch.row.prefix[index])
        causal = batch.row.behind or (batch.row.causal is not None and bool(batch.row.causal[index]))
        following: list[TokenRun] = []
        targets: dict[str, int] = {}
        relations: dict[str, str] = {}
        classes: dict[str, dict[str, int]] = {}
        for config, objective in zip(self.recipe.objective, self.objectives, strict=True):
            slots, labels = self._predicted(batch, index, objective.name)
            if config.relates_segments and config.classes is not None:
                relations[objective.name] = config.classes[labels[0]]
                continue
            targets[objective.name] = len(labels)
            if config.generator_learns is not None:
                continue  # inputs and labels are made in the step
            if config.classes is not None:
                counts = Counter(labels)
                classes[objective.name] = {each: counts[label] for label, each in enumerate(config.classes)}
                continue
            if causal:  # whatever is predicted in other rows
                following += self._following(objective.name, slots, labels, ids[:tokens])
                continue
            if config.from_before:
                slots = slots + 1
            elif config.row_marks != "ends":
                context = int(slots[0]) // self.recipe.model.directions if len(slots) else tokens
                if prefix is not None:
                    context = prefix if self.recipe.reads_prefix else 0
                following += self._following(objective.name, slots, labels, ids[:tokens])
                continue
            marks |= _marks(config, batch, index, slots, labels)
        lines = [] if batch.row.source is None else [RowText(name="source", pieces=source)]
        for name, start, stop in self._texts(documents[:tokens], segments, context):
            pieces = self.speller.pieces(ids, marks, start, stop, backwards)
            lines.append(RowText(name=name, pieces=pieces + [each for each in following if start <= each.place < stop]))
        return Row(
            number=number,
            length=len(ids),
            tokens=tokens,
            source_length=source_length,
            source_tokens=sum(len(piece.ids) for piece in source),
            targets=targets,
            relations=relations,
            classes=classes,
            backwards=backwards,
            both_sides=self._both_sides(causal, prefix),
            follows=None if batch.row.follows is None else bool(batch.row.follows[index]),
            lines=lines,
        )

    def _both_sides(self, causal: bool, prefix: int | None) -> bool | None:
        """Whether a row is read from both sides, where a model reads others causally; None: it reads all alike."""
        if any(isinstance(part, MaskedLanguageModelConfig) and part.causal > 0 for part in self.recipe.objective):
            return not causal
        return bool(prefix) if any(config.reads_rows for config in self.recipe.objective) else None

    def _source(self, batch: Batch, index: int) -> tuple[list[TokenRun], int]:
        """The encoder's tokens in a sequence-to-sequence model, and their number with padding."""
        if batch.row.source is None:
            return [], 0
        ids: list[int] = batch.row.source.ids[index].tolist()
        tokens = len(ids) if batch.row.source.padding_mask is None else int(batch.row.source.padding_mask[index].sum())
        return self.speller.pieces(ids, {}, 0, tokens), len(ids)

    def _predicted(self, batch: Batch, index: int, name: str) -> tuple[NDArray[np.int64], list[int]]:
        """(n,) indices among the row's (T + P) x directions hidden states that predict, and the n labels."""
        length = batch.row.ids.shape[1] if batch.row.queries is None else batch.row.queries.visible.shape[1]
        slots = length * self.recipe.model.directions
        rows, labels = (each.numpy() for each in batch.targets[name])
        low, high = np.searchsorted(rows, [index * slots, (index + 1) * slots])
        return rows[low:high] - index * slots, labels[low:high].tolist()

    def _following(self, name: str, slots: NDArray[np.int64], labels: list[int], ids: list[int]) -> list[TokenRun]:
        """The targets that the row does not hold: every other target stands next to the position that predicts it.

        Where the input is noisy, those are among them that it hides.
        """
        pieces = []
        noisy = any(isinstance(part, CausalLanguageModelConfig) and part.noise > 0 for part in self.recipe.objective)
        positions, directions = np.divmod(slots, self.recipe.model.directions)
        for position, direction, label in zip(positions.tolist(), directions.tolist(), labels, strict=True):
            beside = position - 1 if direction else position + 1
            if beside < len(ids) and (ids[beside] == label or not noisy):
                assert ids[beside] == label, f"{name} predicts at {position} what is no neighbour"
                continue
            pieces.append(
                TokenRun(
                    kind="next",
                    place=position,
                    ids=[],
                    space=self.speller.spaced(ids[position], label),
                    text="",
                    targets=[label],
                    original=self.speller.name(label),
                    objective=name,
                )
            )
        return pieces

    def _texts(
        self, documents: NDArray[np.int64], segments: NDArray[np.int64] | None, context: int
    ) -> Iterator[tuple[str, int, int]]:
        """Name, start and end of each text in a row; the first `context` tokens are no targets."""
        owners = documents if segments is None else np.minimum(segments, 1)  # [CLS], where it is last, goes with B
        several = owners[0] != owners[-1]
        inside = np.flatnonzero(owners[1:] != owners[:-1]) + 1
        cuts = sorted({0, *inside.tolist(), context, len(owners)})
        whole = "target" if any(config.rewrites for config in self.recipe.objective) else "input"
        for start, stop in pairwise(cuts):
            if segments is not None:
                yield "reused" if start < context else "B" if owners[start] else "A", start, stop
                continue
            first = "prefix" if self.recipe.reads_prefix else "context"
            name = first if start < context else "document" if several else whole
            yield f"{name} {documents[start]}" if several else name, start, stop


def _marks(
    objective: ObjectiveConfig, batch: Batch, index: int, slots: NDArray[np.int64], labels: list[int]
) -> dict[int, TargetRun]:
    """The targets of an objective in a row, by the position of their first token."""
    if batch.row.queries is None or objective.scoring != "query":
        run = objective.targets_together
        return {int(slots[at]): TargetRun(objective.kind, labels[at : at + run]) for at in range(0, len(labels), run)}
    queries = slots - batch.row.ids.shape[1]
    positions = batch.row.queries.positions[index].numpy()[queries]
    seen = batch.row.queries.visible[index].numpy()[slots][:, positions].sum(1)
    return {
        position: TargetRun(objective.kind, [label], order + 1)
        for position, label, order in zip(positions.tolist(), labels, seen.tolist(), strict=True)
    }
