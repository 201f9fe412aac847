"""Rows with their targets, of one text or joined from several: the stage between an order and tensors.

Shapes: N rows, T length, U length of the source, P places of a second stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.batching.target_drawing import TargetDrawing
from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.formats.pairs import SentencePairConfig
from bakeoff.formats.registry import InputConfig
from bakeoff.formats.uneven import padded_length
from bakeoff.objectives.objective import Targets, row_lengths
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


@dataclass
class RowsWithTargets:
    """Rows after the objectives have changed them, and the targets."""

    examples: Examples
    targets: Mapping[str, Targets]
    """The targets of each objective, by the objective's name."""

    @property
    def length(self) -> int:
        """T + P, the number of places in a row, second stream included."""
        length: int = (self.examples.ids if self.examples.visible is None else self.examples.visible).shape[1]
        return length


class TextRows:
    """All rows of one text.

    Args:
        split: the text.
        tokenizer: its tokenizer.
        rows: the rows' format.
        drawing: the objectives' choice of targets in these rows.
        seed: the seed of all random numbers in training.

    Raises:
        UserError: the text has no row of that format.
    """

    def __init__(
        self, split: Split, tokenizer: Tokenizer, rows: InputConfig, drawing: TargetDrawing, seed: int
    ) -> None:
        self.split, self.tokenizer, self.drawing, self.seed = split, tokenizer, drawing, seed
        self.format = rows.build(split, tokenizer, drawing.marks, drawing.relation)
        self.parallel = rows.parallel
        if self.format.size == 0:
            raise UserError(_nothing(rows, drawing.relation is not None))

    @property
    def tokens_per_example(self) -> float:
        """Mean number of tokens of an example, source included, padding not counted."""
        text = self.format.tokens_per_example
        if self.parallel:
            return text
        source, target = row_lengths(self.drawing.objectives, round(text))
        return float(source + target) if source else text

    def examples(self, indices: NDArray[np.int64], draws: Draws, even: bool) -> Examples:
        """The examples at these indices, before any objective has changed them; `even` as in `Order`."""
        examples = self.format.examples(indices, draws)
        if even:
            trim(examples)
        return examples

    def make(
        self,
        indices: NDArray[np.int64],
        epochs: NDArray[np.int64],
        seed: int,
        progress: NDArray[np.float64] | None,
        even: bool,
        measured: bool = False,
    ) -> RowsWithTargets:
        """Rows of these examples with their targets.

        Args:
            indices: (N,) the examples.
            epochs: (N,) number of times that each had been read before.
            seed: the seed of all random numbers.
            progress: (N,) the share of the training that is done before each is read; None: all of it.
            even: see `Order`.
            measured: the rows are for measuring a loss, and not for training.
        """
        draws = self.drawing.draws(Draws(seed, epochs, indices))
        examples = self.examples(indices, draws, even)
        examples.progress, examples.measured = progress, measured
        return RowsWithTargets(examples, self.drawing.targets(examples, self.split, self.tokenizer, draws))


def trim(examples: Examples) -> None:
    """Cut rows to the longest of them, rounded up to a multiple of `LENGTH_STEP`."""
    length = padded_length((examples.documents > 0).sum(1))
    examples.ids, examples.documents = examples.ids[:, :length], examples.documents[:, :length]
    examples.sources = examples.sources[:, :length]
    if examples.segments is not None:
        examples.segments = examples.segments[:, :length]


def joined(made: Sequence[RowsWithTargets], places: Sequence[NDArray[np.int64]], pad: int) -> RowsWithTargets:
    """The rows of several texts as one array of rows, in the order of `places`; shorter rows are padded.

    Args:
        made: the rows of each text, of the same format and objectives.
        places: for each text, the (n,) places of its n rows among all rows.
        pad: id of the padding token.
    """
    count = sum(len(own) for own in places)
    examples = [each.examples for each in made]
    length = max(each.ids.shape[1] for each in examples)
    values: dict[str, Any] = {}
    for field in fields(Examples):
        arrays = [getattr(each, field.name) for each in examples]
        if not isinstance(arrays[0], np.ndarray):
            assert all(array == arrays[0] for array in arrays), f"{field.name} is of the format, not of the text"
            values[field.name] = arrays[0]
        elif field.name == "visible":
            values[field.name] = _joined_visible(arrays, places, count, length)
        else:
            fill = {"ids": pad, "source_ids": pad, "sources": -1, "following": -1}.get(field.name, 0)
            shape = [count, *(max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays), strict=True))]
            values[field.name] = np.full(shape, fill, arrays[0].dtype)
            for array, own in zip(arrays, places, strict=True):
                values[field.name][(own, *(slice(size) for size in array.shape[1:]))] = array
    rows = RowsWithTargets(Examples(**values), {})
    targets = {
        name: _joined_targets([each.targets[name] for each in made], made, places, rows) for name in made[0].targets
    }
    return RowsWithTargets(rows.examples, targets)


def _joined_visible(
    arrays: Sequence[NDArray[np.bool_]], places: Sequence[NDArray[np.int64]], count: int, length: int
) -> NDArray[np.bool_]:
    """(count, T + P, T) visibility: the rows of tokens padded to T = length, then those of the second stream to P."""
    stream = max(array.shape[1] - array.shape[2] for array in arrays)
    visible = np.zeros((count, length + stream, length), np.bool_)
    for array, own in zip(arrays, places, strict=True):
        tokens, queries = array.shape[2], array.shape[1] - array.shape[2]
        visible[own, :tokens, :tokens] = array[:, :tokens]
        visible[own, length : length + queries, :tokens] = array[:, tokens:]
    return visible


def _joined_targets(
    targets: Sequence[Targets],
    made: Sequence[RowsWithTargets],
    places: Sequence[NDArray[np.int64]],
    rows: RowsWithTargets,
) -> Targets:
    """One objective's targets in all texts, with their places counted in the joined rows."""
    directions = max(target.directions for target in targets)
    length, whole = rows.examples.ids.shape[1], rows.length
    found, labels = [], []
    for target, each, own in zip(targets, made, places, strict=True):
        tokens = each.examples.ids.shape[1]
        example, place = np.divmod(target.in_rows_of(tokens, each.length).rows, each.length * target.directions)
        place, direction = np.divmod(place, target.directions)
        place = place + (place >= tokens) * (length - tokens)  # a second stream stands behind the padding
        found.append((own[example] * whole + place) * directions + direction)
        labels.append(target.labels)
    together = np.concatenate(found)
    rising = np.argsort(together, kind="stable")
    return Targets(together[rising], np.concatenate(labels)[rising], directions, whole)


def _nothing(rows: InputConfig, related: bool) -> str:
    """The reason why a text has not a single row."""
    if related or isinstance(rows, SentencePairConfig):
        return (
            f"the corpus has no two sentences of one document that fit into a row of {rows.length} tokens; raise "
            "input.length, or prepare documents of several sentences"
        )
    return "the corpus has no example of two tokens or more; prepare more text"
