"""Rows with their targets, of one text or joined from several: the stage between an order and tensors.

Shapes: N rows, T length, U length of the source, P positions of a second stream.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.formats.pairs import SentencePairConfig
from bakeoff.formats.registry import InputConfig
from bakeoff.formats.relation import AsTheyAre, Relation
from bakeoff.lengths import padded_length
from bakeoff.objectives.objective import (
    Objective,
    ObjectiveConfig,
    Shortening,
    Targets,
    no_targets,
    row_lengths,
)
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row, Signal, signals
from bakeoff.tokenizer.tokenizer import Tokenizer


class TargetDrawing:
    """The objectives of a training, applied to rows.

    Args:
        configs: the objectives' configs.
        objectives: the objectives built from them.
        idle: names of inactive objectives: they hide, move and replace no tokens and have no targets of tokens, and all
            second segments follow the first.
    """

    def __init__(
        self, configs: Sequence[ObjectiveConfig], objectives: Sequence[Objective], idle: Collection[str] = ()
    ) -> None:
        self.objectives = objectives
        # An objective leaves alone the tokens that another has taken before it. They take turns in an order of their
        # own, so that the order in which a recipe lists them changes nothing.
        turns = sorted(
            zip(configs, objectives, strict=True),
            key=lambda pair: (not pair[0].reads_rows, pair[0].moves, pair[0].kind),
        )
        self.in_turn = [each for config, each in turns if config.relates_segments or config.kind not in idle]
        self.versions = next((config.versions for config in configs if config.versions is not None), None)
        """Number of versions of an example; None: another version in every epoch."""
        related = [
            AsTheyAre() if config.kind in idle else cast(Relation, objective)
            for config, objective in zip(configs, objectives, strict=True)
            if config.relates_segments
        ]
        self.relation = related[0] if related else None
        """The relation that arranges the segments of pairs; None: the segments stay as they are."""
        self.marks: RowMarks = next((config.row_marks for config in configs if config.row_marks != "ends"), "ends")
        """The special tokens in rows of text."""

    def draws(self, draws: Draws) -> Draws:
        """The random numbers of the rows; they repeat from epoch to epoch if examples have few versions."""
        return draws.static(self.versions)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> dict[str, Targets]:
        """The targets of each objective by its name; the examples' ids are changed in place."""
        drawn = {each.name: each.targets(examples, split, tokenizer, draws) for each in self.in_turn}
        return {each.name: drawn.get(each.name, no_targets()) for each in self.objectives}


@dataclass
class RowsWithTargets:
    """Rows after the objectives have changed them, and the targets."""

    examples: Examples
    targets: Mapping[str, Targets]
    """The targets of each objective, by the objective's name."""

    @property
    def length(self) -> int:
        """T + P, the number of positions in a row, second stream included."""
        row = self.examples.row
        length: int = (row.ids if row.queries is None else row.queries.visible).shape[1]
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
    def kept_share(self) -> float:
        """The share of a row's tokens that objectives leave in it."""
        return min((each.kept_share for each in self.drawing.objectives if isinstance(each, Shortening)), default=1.0)

    @property
    def tokens_per_example(self) -> float:
        """Mean number of tokens of an example in training, source included, padding not counted."""
        text = self.format.tokens_per_example * self.kept_share
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
    """Cut rows to the longest of them, rounded up to a multiple of `LENGTH_STEP`; sources stay."""
    length = padded_length(examples.padding_mask.sum(1))
    cut: dict[str, Any] = {name: value[:, :length] for name, value in _by_token(examples.row)}
    examples.row = examples.row._replace(**cut)
    for name, value in _by_token(examples):
        setattr(examples, name, value[:, :length])


def _by_token(of: Row[Any] | Examples) -> list[tuple[str, NDArray[Any]]]:
    """The signals with a value for each token, as far as they are there."""
    values = ((name, getattr(of, name)) for name, signal in signals(type(of)).items() if signal.axes == "T")
    return [(name, value) for name, value in values if value is not None]


def joined(made: Sequence[RowsWithTargets], positions: Sequence[NDArray[np.int64]], pad: int) -> RowsWithTargets:
    """The rows of several texts as one array of rows, in the order of `positions`; shorter rows are padded.

    Args:
        made: the rows of each text, of the same format and objectives.
        positions: for each text, the (n,) positions of its n rows among all rows.
        pad: id of the padding token.
    """
    examples = [each.examples for each in made]
    values = _joined(
        {field.name: [getattr(each, field.name) for each in examples] for field in fields(Examples)},
        Examples,
        positions,
        pad,
    )
    rows = RowsWithTargets(Examples(**values), {})
    targets = {
        name: _joined_targets([each.targets[name] for each in made], made, positions, rows) for name in made[0].targets
    }
    return RowsWithTargets(rows.examples, targets)


def _joined(
    values: Mapping[str, Sequence[Any]], of: type, positions: Sequence[NDArray[np.int64]], pad: int
) -> dict[str, Any]:
    """The values of each text by name, joined as the declarations of their class say: signals, or rows within."""
    known = signals(of)
    present = {name: by_text for name, by_text in values.items() if name in known and by_text[0] is not None}
    sizes = [
        _sizes({name: by_text[number] for name, by_text in present.items()}, known) for number in range(len(positions))
    ]
    most = {letter: max(each[letter] for each in sizes) for letter in sizes[0]}
    together: dict[str, Any] = {}
    for name, by_text in values.items():
        if name in present:
            fill = pad if known[name].fill is None else known[name].fill
            together[name] = _joined_signal(by_text, known[name].axes, fill, sizes, most, positions)
        elif isinstance(by_text[0], tuple):
            names: tuple[str, ...] = getattr(type(by_text[0]), "_fields")  # noqa: B009
            inner = {field: [getattr(each, field) for each in by_text] for field in names}
            together[name] = type(by_text[0])(**_joined(inner, type(by_text[0]), positions, pad))
        else:
            assert all(each == by_text[0] for each in by_text), f"{name} is of the format, not of the text"
            together[name] = by_text[0]
    return together


def _sizes(values: Mapping[str, NDArray[Any]], known: Mapping[str, Signal]) -> dict[str, int]:
    """The size of each axis by its letter."""
    pairs = (pair for name, array in values.items() for pair in zip(known[name].axes, array.shape[1:], strict=True))
    return {letter: size for letter, size in pairs if letter != "S"}


def _joined_signal(
    arrays: Sequence[NDArray[Any]],
    axes: str,
    fill: int | None,
    sizes: Sequence[Mapping[str, int]],
    most: Mapping[str, int],
    positions: Sequence[NDArray[np.int64]],
) -> NDArray[Any]:
    """One signal of all texts; `sizes` are those of each text's axes, and `most` the largest of each."""
    shape = [most["T"] + most["N"] if letter == "S" else most[letter] for letter in axes]
    whole = np.full([sum(map(len, positions)), *shape], fill, arrays[0].dtype)
    for array, rows, size in zip(arrays, positions, sizes, strict=True):
        inner = [
            # The rows of a second stream begin after the padding of the tokens.
            np.concatenate([np.arange(size["T"]), most["T"] + np.arange(size["N"])])
            if letter == "S"
            else np.arange(size[letter])
            for letter in axes
        ]
        whole[np.ix_(rows, *inner)] = array
    return whole


def _joined_targets(
    targets: Sequence[Targets],
    made: Sequence[RowsWithTargets],
    positions: Sequence[NDArray[np.int64]],
    rows: RowsWithTargets,
) -> Targets:
    """One objective's targets in all texts, with their positions counted in the joined rows."""
    directions = max(target.directions for target in targets)
    length, whole = rows.examples.row.ids.shape[1], rows.length
    indices, labels = [], []
    counted = None if targets[0].counted is None else np.zeros(len(rows.examples.row.ids), np.int64)
    for target, each, row_positions in zip(targets, made, positions, strict=True):
        tokens = each.examples.row.ids.shape[1]
        example, position = np.divmod(target.in_rows_of(tokens, each.length).rows, each.length * target.directions)
        position, direction = np.divmod(position, target.directions)
        position = position + (position >= tokens) * (length - tokens)  # a second stream stands after the padding
        indices.append((row_positions[example] * whole + position) * directions + direction)
        labels.append(target.labels)
        if counted is not None and target.counted is not None:
            counted[row_positions] = target.counted
    together = np.concatenate(indices)
    rising = np.argsort(together, kind="stable")
    weights = [target.weights for target in targets if target.weights is not None]
    return Targets(
        together[rising],
        np.concatenate(labels)[rising],
        directions,
        whole,
        np.concatenate(weights)[rising] if weights else None,
        counted,
    )


def _nothing(rows: InputConfig, related: bool) -> str:
    """The reason why a text has not a single row."""
    if related or isinstance(rows, SentencePairConfig):
        return (
            f"the corpus has no two sentences of one document that fit into a row of {rows.length} tokens; raise "
            "input.length, or prepare documents of several sentences"
        )
    return "the corpus has no example of two tokens or more; prepare more text"
