"""A row of a batch in words: its text, what is predicted of it, how its segments relate, how much is padding."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.batch import Batch
from bakeoff.config import Config
from bakeoff.objectives.objective import Objective, ObjectiveConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.pieces import Speller, TargetRun, TokenRun
from bakeoff.tokenizer.tokenizer import Tokenizer


class RowText(Config):
    """A stretch of a row that is a text of its own."""

    name: str
    """input; A and B where there are segments, and before them reused, which the next row remembers; document 1, 2, ...
    where there are several; context, or context 1, 2, ..., for what is only read; prefix, or prefix 1, 2, ..., for
    what is seen from both sides; source and target of a
    sequence-to-sequence model, the target being what its decoder reads and, at the end, has to write last."""
    pieces: list[TokenRun]
    """The text, in order."""


class Row(Config):
    """One example as the model is trained on it."""

    number: int
    """Its number among the rows that were asked for, counted from 1."""
    length: int
    """T, places of the row, padding included."""
    tokens: int
    """How many of them hold tokens."""
    source_length: int
    """U, places of the source, padding included; 0: there is none."""
    source_tokens: int
    """How many of them hold tokens."""
    targets: dict[str, int]
    """How many predictions about single tokens each objective makes; in two directions those of both."""
    relations: dict[str, str]
    """How the segments relate, in words, by the objective that asks for it."""
    classes: dict[str, dict[str, int]]
    """How many places are of each class, by the objective that tells classes of single tokens."""
    backwards: bool
    """Whether it reads the text from its end."""
    both_sides: bool | None
    """Whether a model that is causal otherwise sees all of the row from both sides; None: it never does."""
    follows: bool | None
    """Whether B goes on with A in the order of reading; None: a relation says it, or there is no choice."""
    lines: list[RowText]
    """The text, without padding, in the order of reading."""


class RowReader:
    """Reads rows of batches; T length, U length of the source, P rows of a second stream.

    Args:
        recipe: the recipe whose batches they are.
        objectives: the objectives that it builds.
        tokenizer: the corpus's.
    """

    def __init__(self, recipe: Recipe, objectives: Sequence[Objective], tokenizer: Tokenizer) -> None:
        self.recipe, self.objectives = recipe, objectives
        self.speller = Speller(tokenizer)

    def read(self, batch: Batch, index: int, number: int) -> Row:
        """Row `index` of a batch or micro-batch, reported under a number."""
        ids: list[int] = batch.ids[index].tolist()
        documents = np.ones(len(ids), np.int64)
        if batch.documents is not None:
            documents = batch.documents[index].numpy()
        elif batch.real is not None:
            documents = batch.real[index].numpy().astype(np.int64)
        tokens = int((documents > 0).sum())
        segments = None if batch.segments is None else batch.segments[index, :tokens].numpy()
        source, source_length = self._source(batch, index)
        backwards = batch.backwards is not None and bool(batch.backwards[index])
        marks: dict[int, TargetRun] = {}
        context = self.recipe.input.remembered_tokens
        prefix = None if batch.prefix is None else int(batch.prefix[index])
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
                continue  # what is read and the labels are made in the step
            if config.classes is not None:
                counts = Counter(labels)
                classes[objective.name] = {each: counts[label] for label, each in enumerate(config.classes)}
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
        lines = [] if batch.source is None else [RowText(name="source", pieces=source)]
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
            both_sides=bool(prefix) if any(config.reads_rows for config in self.recipe.objective) else None,
            follows=None if batch.follows is None else bool(batch.follows[index]),
            lines=lines,
        )

    def _source(self, batch: Batch, index: int) -> tuple[list[TokenRun], int]:
        """What the encoder of a sequence-to-sequence model reads, and its length with padding."""
        if batch.source is None:
            return [], 0
        ids: list[int] = batch.source.ids[index].tolist()
        tokens = len(ids) if batch.source.real is None else int(batch.source.real[index].sum())
        return self.speller.pieces(ids, {}, 0, tokens), len(ids)

    def _predicted(self, batch: Batch, index: int, name: str) -> tuple[NDArray[np.int64], list[int]]:
        """(n,) slots among the row's T + P hidden states, times directions, and what is predicted at each."""
        length = batch.ids.shape[1] if batch.queries is None else batch.queries.visible.shape[1]
        slots = length * self.recipe.model.directions
        rows, labels = (each.numpy() for each in batch.targets[name])
        low, high = np.searchsorted(rows, [index * slots, (index + 1) * slots])
        return rows[low:high] - index * slots, labels[low:high].tolist()

    def _following(self, name: str, slots: NDArray[np.int64], labels: list[int], ids: list[int]) -> list[TokenRun]:
        """What is predicted from a row's last token; all else is in the row, next to where it is predicted from."""
        pieces = []
        places, directions = np.divmod(slots, self.recipe.model.directions)
        for place, direction, label in zip(places.tolist(), directions.tolist(), labels, strict=True):
            beside = place - 1 if direction else place + 1
            if beside < len(ids):
                assert ids[beside] == label, f"{name} predicts at {place} what is no neighbour"
                continue
            pieces.append(
                TokenRun(
                    kind="next",
                    place=place,
                    ids=[],
                    space=self.speller.spaced(ids[place], label),
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
        """Names, starts and ends of the texts that a row's tokens are made of; the first are no targets."""
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
    """What an objective predicts of the tokens of a row, by their first place."""
    if batch.queries is None or objective.scoring != "query":
        run = objective.targets_together
        return {int(slots[at]): TargetRun(objective.kind, labels[at : at + run]) for at in range(0, len(labels), run)}
    queries = slots - batch.ids.shape[1]
    places = batch.queries.positions[index].numpy()[queries]
    seen = batch.queries.visible[index].numpy()[slots][:, places].sum(1)
    return {
        place: TargetRun(objective.kind, [label], order + 1)
        for place, label, order in zip(places.tolist(), labels, seen.tolist(), strict=True)
    }
