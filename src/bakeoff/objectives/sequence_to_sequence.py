"""The common part of objectives that make a source and a target of a row of text.

Shapes: N examples, L tokens of a row of text, U of a source, T of a target.
"""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.lengths import padded_length
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, UntiedTokenHead, tied_head
from bakeoff.objectives.objective import Scoring, Targets, TokenObjectiveConfig
from bakeoff.row import Source
from bakeoff.tokenizer.tokenizer import Tokenizer

ROUNDED = 8
"""Rows without a fixed length are padded to a multiple of this, so that there are few shapes."""


class SequenceToSequenceBaseConfig(TokenObjectiveConfig):
    """An objective for models with an encoder and a decoder."""

    head: Literal["tied", "scaled", "untied"] = "tied"
    """The last layer: the embedding's table (tied), the same table after a division of the states by the root of their
    width (scaled; the first T5's published code), or a table of its own (untied; T5's version 1.1).
    """
    bias: bool = False
    """Each token has a bias in its score."""
    decoder_begins: list[Literal["start", "separator", "pad"]] = Field(default=["start"], min_length=1, max_length=2)
    """The special tokens that the decoder reads before a target. start is [CLS]; with published weights it is padding
    for T5, separator and start for BART, and the separator for fairseq's models.
    """
    source_start: bool = False
    """A source begins with the start token (BART)."""
    row_marks: ClassVar[RowMarks] = "none"
    rewrites: ClassVar[bool] = True
    generates: ClassVar[bool] = True
    scoring: ClassVar[Scoring | None] = "target"

    @override
    def prompt(self, tokenizer: Tokenizer) -> list[int]:
        """The ids that the decoder reads before a target."""
        return [int(getattr(tokenizer, role)) for role in self.decoder_begins]

    @override
    def before_source(self, tokenizer: Tokenizer) -> list[int]:
        """The ids at the beginning of a source, before its text."""
        return [tokenizer.start] if self.source_start else []

    def source_length(self, tokens: int) -> int:
        """Number of tokens of a source whose text and separator have `tokens` tokens."""
        return tokens + self.source_start

    def target_length(self, tokens: int) -> int:
        """Number of tokens that the decoder reads for a target of `tokens` tokens, its final separator included."""
        return tokens + len(self.decoder_begins) - 1

    def head_of_targets(self, model: ModelConfig, vocabulary: int, label_smoothing: float = 0.0) -> Head:
        """A fresh head that scores the target's tokens."""
        if self.head == "untied":
            return UntiedTokenHead(model.stack.output_width, vocabulary, self.bias, label_smoothing)
        return tied_head(model, vocabulary, self.bias, label_smoothing, scaled=self.head == "scaled")


def teach(
    examples: Examples,
    target: NDArray[np.int64],
    padding_mask: NDArray[np.bool_],
    tokenizer: Tokenizer,
    config: SequenceToSequenceBaseConfig,
) -> Targets:
    """Turn the examples' rows into the decoder's input: its first tokens, then the target without its last token.

    Args:
        examples: changed in place; the source gets its start token where the config asks for one.
        target: (N, T) the tokens that the decoder has to write, with the separator at the end.
        padding_mask: (N, T) True for tokens of the target, False for padding after them.
        tokenizer: gives the special tokens.
        config: names the first tokens of decoder and source.

    Returns:
        All tokens of the target.
    """
    prompt = config.prompt(tokenizer)
    read = np.concatenate([np.tile(np.array(prompt, np.int64), (len(target), 1)), target[:, :-1]], axis=1)
    present = np.pad(padding_mask, ((0, 0), (len(prompt) - 1, 0)), mode="edge")  # a row of padding alone stays one
    source = examples.row.source
    assert source is not None
    if config.source_start:
        begins = ((0, 0), (1, 0))
        ids = np.pad(source.ids, begins, constant_values=tokenizer.start)
        source = Source(ids, None if source.padding_mask is None else np.pad(source.padding_mask, begins, mode="edge"))
    examples.row = examples.row._replace(
        ids=np.where(present, read, tokenizer.pad), documents=present.astype(np.int32), source=source
    )
    examples.sources, examples.following = np.full(read.shape, -1, np.int64), None
    row, column = np.nonzero(padding_mask)
    return Targets(row * read.shape[1] + column + len(prompt) - 1, target[padding_mask])


def gather(
    values: NDArray[np.int64], kept: NDArray[np.bool_], length: int, pad: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The kept values, moved to the left of each row of `length` positions, and True for positions that hold one."""
    order = np.argsort(~kept, axis=1, kind="stable")[:, :length]
    padding_mask = np.take_along_axis(kept, order, 1)
    return np.where(padding_mask, np.take_along_axis(values, order, 1), pad), padding_mask


def rounded(kept: NDArray[np.bool_]) -> int:
    """The smallest multiple of `ROUNDED` that all rows of kept values fit into."""
    return padded_length(kept.sum(1), ROUNDED)


def with_end(
    values: NDArray[np.int64], kept: NDArray[np.bool_], end: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values and their mask with one more column at the end, which holds the token that ends a text."""
    return np.pad(values, ((0, 0), (0, 1)), constant_values=end), np.pad(kept, ((0, 0), (0, 1)), constant_values=True)


def ranks(score: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, L) the rank of each score in the rising order of its row; equal scores keep their order."""
    ranked = np.empty_like(score)
    columns = np.broadcast_to(np.arange(score.shape[1]), score.shape)
    np.put_along_axis(ranked, np.argsort(score, axis=1, kind="stable"), columns, axis=1)
    return ranked
