"""Span corruption: spans of the text are replaced by marks, and written after these marks (T5)."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Scoring, Targets
from bakeoff.objectives.refusals import generates_for_a_source
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceBaseConfig, gather, ranks, teach, with_end
from bakeoff.randomness.draws import Draws
from bakeoff.row import Source
from bakeoff.tokenizer.tokenizer import Tokenizer

MOST_MARKS = 10_000
"""Largest number of marks; published models have 100 to 259."""


class SpanCorruptionConfig(SequenceToSequenceBaseConfig):
    """T5's objective (Raffel et al. 2020, arXiv:1910.10683, section 3.1.4).

    A row of `input.length` tokens of text becomes a source and a target of fixed lengths, so that nothing is padded:
    568 tokens become a source of 512 and a target of 114 at the paper's settings.
    """

    kind: Literal["span_corruption"] = "span_corruption"
    """The objective's name."""
    title: ClassVar[str] = "Missing spans (span_corruption)"
    refused: ClassVar[Mapping[str, str]] = generates_for_a_source("span_corruption")
    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that are taken out."""
    span: float = Field(default=3.0, ge=1)
    """Mean length of the spans that are taken out."""
    marks: int = Field(default=100, gt=0, le=MOST_MARKS)
    """Number of tokens that stand for spans, one for each, added to the tokenizer's; a row has at most this many
    spans.
    """
    mark_names: str | None = None
    """The tokenizer's names of these tokens, where {} is their number, counted from 0 (T5's: <extra_id_{}>).
    Absent: the tokenizer has none, and they are added to its vocabulary.
    """
    scoring: ClassVar[Scoring | None] = None

    @property
    def extra_tokens(self) -> int:
        """Number of ids beyond the tokenizer's vocabulary: the marks, unless the tokenizer has them."""
        return self.marks if self.mark_names is None else 0

    @property
    def gap_marks(self) -> int:
        """Number of marks that can stand for gaps in a text to be filled in."""
        return self.marks

    @override
    def mark_ids(self, tokenizer: Tokenizer) -> list[int]:
        if self.mark_names is None:
            return [tokenizer.size + number for number in range(self.marks)]
        names = [self.mark_names.replace("{}", str(number)) for number in range(self.marks)]
        ids = [tokenizer.id_of(name) for name in names]
        if None in ids:
            raise UserError(
                f"span_corruption.mark_names: the tokenizer has no {names[ids.index(None)]}; prepare the text with the "
                "tokenizer of the run that has them, or leave it out"
            )
        return [int(token) for token in ids if token is not None]

    @model_validator(mode="after")
    def _a_number_in_the_names(self) -> Self:
        if self.mark_names is not None and "{}" not in self.mark_names:
            raise ValueError(f"mark_names: {self.mark_names} has no {{}} for a mark's number; <extra_id_{{}}> has")
        return self

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "SpanCorruption":
        return SpanCorruption(self, model, vocabulary)


class SpanCorruption:
    """Takes spans out of rows; N examples, L tokens of text, S spans."""

    name = "span_corruption"

    def __init__(self, config: SpanCorruptionConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = config.head_of_targets(model, vocabulary)
        self.targets_per_token = 1.0

    def counts(self, length: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of removed tokens and of spans, both (N,), in rows of (N,) tokens; a row of one token keeps it."""
        noise = np.clip(np.rint(length * self.config.rate), 1, np.maximum(length - 1, 0)).astype(np.int64)
        spans = np.clip(np.rint(noise / self.config.span), 1, self.config.marks).astype(np.int64)
        return noise, np.minimum(np.minimum(spans, noise), length - noise)

    def lengths(self, length: int) -> tuple[int, int]:
        """Number of tokens of the source and of the decoder's input of a row, all special tokens included."""
        source, target = self.without_openings(length)
        return self.config.source_length(source), self.config.target_length(target)

    def without_openings(self, length: int) -> tuple[int, int]:
        """Number of tokens of the source and of the target of a row, marks and the final separator included."""
        noise, spans = (int(count[0]) for count in self.counts(np.array([length])))
        return length - noise + spans + 1, noise + spans + 1

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Rewrite the rows: the source is the text with a mark for each span, the target each mark and its span."""
        padding_mask, text = examples.padding_mask, examples.row.ids
        spans = self.spans(padding_mask.sum(1), padding_mask.shape[1], draws)
        inside = spans >= 0
        opens = inside & (spans != np.pad(spans[:, :-1], ((0, 0), (1, 0)), constant_values=-1))
        marks = np.array(self.config.mark_ids(tokenizer), np.int64)[np.maximum(spans, 0)]
        source_length, target_length = self.without_openings(padding_mask.shape[1])
        source, kept = with_end(
            np.where(inside, marks, examples.row.ids), padding_mask & (~inside | opens), tokenizer.separator
        )
        examples.row = examples.row._replace(source=Source(*gather(source, kept, source_length, tokenizer.pad)))
        both = np.stack([marks, text], axis=2).reshape(len(marks), -1)  # each token after its possible mark
        target, kept = with_end(both, np.stack([opens, inside], axis=2).reshape(both.shape), tokenizer.separator)
        return teach(examples, *gather(target, kept, target_length, tokenizer.pad), tokenizer, self.config)

    def spans(self, padding_mask: NDArray[np.int64], length: int, draws: Draws) -> NDArray[np.int64]:
        """(N, L) the number of each position's span, from 0 in each row, or -1; rows have (N,) real tokens.

        The kept tokens and the removed tokens are each cut at random into the same number of non-empty pieces, which
        alternate.
        """
        noise, spans = self.counts(padding_mask)
        most = int(spans.max(initial=0))
        gone = cut(noise, spans, most, draws.words("spans", length))
        stays = cut(padding_mask - noise, spans, most, draws.words("between", length))
        starts = np.cumsum(stays + gone, 1) - gone  # (N, S) where each span begins
        steps = np.zeros((len(padding_mask), length + 1), np.int64)
        rows = np.arange(len(padding_mask))[:, None]
        used = np.arange(most) < spans[:, None]
        np.add.at(steps, (rows, np.where(used, starts, length)), 1)
        number = np.cumsum(steps[:, :length], 1) - 1  # the last span that began
        ends = np.take_along_axis(starts + gone, np.maximum(number, 0), 1) if most else np.zeros_like(number)
        return np.where((number >= 0) & (np.arange(length) < ends), number, -1)


def cut(total: NDArray[np.int64], pieces: NDArray[np.int64], most: int, words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Lengths of pieces, none empty, that (N,) totals are cut into, every way being equally likely.

    Args:
        total: (N,) the lengths to cut.
        pieces: (N,) numbers of pieces; each at most the total.
        most: S, the largest number of pieces.
        words: (N, L) random words, L at least the largest total.

    Returns:
        (N, S) lengths, 0 after a row's last piece.
    """
    length = words.shape[1]
    gaps = np.arange(length) < total[:, None] - 1  # positions to cut after
    score = np.where(gaps, words.astype(np.int64), np.iinfo(np.int64).max)
    cuts = gaps & (ranks(score) < pieces[:, None] - 1)
    piece = np.pad(np.cumsum(cuts, 1)[:, :-1], ((0, 0), (1, 0)))  # (N, L) the piece that each unit belongs to
    counted = np.where(np.arange(length) < total[:, None], piece, most)
    lengths = np.zeros((len(total), most + 1), np.int64)
    np.add.at(lengths, (np.arange(len(total))[:, None], counted), 1)
    return lengths[:, :most]
