"""Pairs of a source and a target from a corpus of translations."""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import InputBaseConfig, RowMarks
from bakeoff.formats.relation import Relation
from bakeoff.lengths import padded_length
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row, Source
from bakeoff.tokenizer.tokenizer import Tokenizer


class ParallelConfig(InputBaseConfig):
    """A target as the row, and a source beside it, each with [SEP] at its end; neither is ever cut.

    `length` bounds both; rows that are made together are padded to the longest of them.
    """

    format: Literal["parallel"] = "parallel"
    """The format's name."""
    parallel: ClassVar[bool] = True
    uneven: ClassVar[bool] = True

    def build(
        self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None = None
    ) -> "Parallel":
        """The format over a split of pairs.

        Raises:
            UserError: a source or a target is longer than a row.
        """
        return Parallel(self, split, tokenizer)


class Parallel(Format):
    """The pairs of a split; N examples, U length of the source, T of the target.

    Attributes:
        lengths: (size, 2) numbers of tokens of source and target, [SEP] included.
    """

    def __init__(self, config: ParallelConfig, split: Split, tokenizer: Tokenizer) -> None:
        self.split, self.tokenizer = split, tokenizer
        self.bounds = np.asarray(split.sentences)
        self.lengths = np.diff(self.bounds).reshape(-1, 2) + 1
        self.size = len(self.lengths)
        self.tokens_per_example = float(self.lengths.sum() / max(1, self.size))
        longest = int(self.lengths.max(initial=0))
        if longest > config.length:
            raise UserError(
                f"input.length: {config.length} tokens with [SEP], but the corpus has pairs of {longest}; set it to "
                f"{longest}, or prepare the corpus with --longest-pair {config.length - 1}"
            )

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """The pairs; nothing in them is random."""
        target, padding_mask = self._side(2 * indices + 1)
        row: Row[NDArray[Any]] = Row(
            target, documents=padding_mask.astype(np.int32), source=Source(*self._side(2 * indices))
        )
        return Examples(row, np.full(target.shape, -1, np.int64))

    def _side(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The sentences of these numbers with [SEP] at the end, in rows padded to the longest, and True for tokens."""
        starts, ends = self.bounds[numbers][:, None], self.bounds[numbers + 1][:, None]
        column = np.arange(padded_length(ends - starts + 1))
        positions = np.minimum(starts + column, len(self.split.tokens) - 1)
        ids = self.split.tokens[positions].astype(np.int64)
        ids = np.where(column < ends - starts, ids, self.tokenizer.pad)
        ids[column == ends - starts] = self.tokenizer.separator
        return ids, column <= ends - starts
