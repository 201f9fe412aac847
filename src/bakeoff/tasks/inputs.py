"""Texts and pairs of texts as token ids, in the format that pre-training used."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.models.model import ModelConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

SHORTEST = 8
"""Fewest tokens that a row may be cut to: special tokens and something of both texts."""


@dataclass(frozen=True)
class EncodedRows:
    """Rows of token ids; N rows."""

    ids: list[NDArray[np.int64]]
    """N arrays of (length of the row,) token ids, special tokens included."""
    second: NDArray[np.int64]
    """(N,) where the second text starts; the length of the row where there is none."""
    truncated: int
    """How many rows were too long."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) tokens of each row."""
        return np.array([len(ids) for ids in self.ids], np.int64)


def check_length(model: ModelConfig, length: int) -> None:
    """Refuse rows that a model cannot read.

    Raises:
        UserError: the length is more than the model has positions for, or too short for anything.
    """
    longest = model.longest_input
    if longest is not None and length > longest:
        raise UserError(f"length: {length} is more than the {longest} positions that the model has")
    if length < SHORTEST:
        raise UserError(f"length: {length} is too short; give at least {SHORTEST}")


class InputFormat:
    """[CLS] A [SEP] and [CLS] A [SEP] B [SEP]; decoders alone: [SEP] A and [SEP] A [SEP] B, as documents start.

    These are also the rows of a decoder behind an encoder, which reads the same without [CLS], as in pre-training.
    Where pre-training has put [CLS] last, as XLNet does, it is: A [SEP] [CLS] and A [SEP] B [SEP] [CLS].

    Attributes:
        length: the most tokens of a row.
        pad: id of the padding token.
        segments: whether rows have segment ids, 1 for the second text, and 2 for [CLS] where it is last.
        start_last: whether [CLS] is last.
        reads_forwards: whether a position knows nothing of those behind it.
        has_source: whether a decoder reads a source through an encoder.
    """

    def __init__(self, tokenizer: Tokenizer, recipe: Recipe, length: int) -> None:
        """A format for the models of a recipe.

        Raises:
            UserError: the length is more than the model has positions for, or too short for anything.
        """
        model = recipe.model
        check_length(model, length)
        self.tokenizer, self.length, self.pad = tokenizer, length, tokenizer.pad
        self.segments = model.embedding.segments >= 2 or any(mixer.reads_segments for mixer in model.mixers)
        self.start_last = recipe.input.start_last
        self.reads_forwards = model.causal and not recipe.reads_both_sides
        self.has_source = model.sequence_to_sequence
        start, separator = [tokenizer.start], [tokenizer.separator]
        if model.encoder is None:
            self._around = separator, separator, list[int]()
        elif self.start_last:
            self._around = list[int](), separator, separator + start
        else:
            self._around = start, separator, separator

    @property
    def before(self) -> int:
        """Special tokens in front of a text."""
        return len(self._around[0])

    @property
    def room(self) -> int:
        """The most tokens of a text."""
        return self.length - self.before - len(self._around[2])

    def framed(self, texts: Sequence[NDArray[np.int64]]) -> EncodedRows:
        """Rows of texts of at most `room` tokens each."""
        before, _, behind = (np.array(part, np.int64) for part in self._around)
        rows = [np.concatenate([before, ids[: self.room], behind]) for ids in texts]
        truncated = sum(len(ids) > self.room for ids in texts)
        return EncodedRows(rows, np.array([len(row) for row in rows], np.int64), truncated)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> EncodedRows:
        """Rows of at most `length` tokens; the longer text of a pair is cut first, at its end.

        Args:
            texts: (N,) texts.
            pairs: (N,) second texts, or None.
        """
        firsts = self._ids(texts)
        seconds = None if pairs is None else self._ids(pairs)
        if seconds is None:
            return self.framed(firsts)
        before, between, behind = (np.array(part, np.int64) for part in self._around)
        room = self.length - len(before) - len(between) - len(behind)
        rows, starts, truncated = [], [], 0
        for first, second in zip(firsts, seconds, strict=True):
            kept, other = longest_first(len(first), len(second), room)
            truncated += kept + other < len(first) + len(second)
            rows.append(np.concatenate([before, first[:kept], between, second[:other], behind]))
            starts.append(len(before) + kept + len(between))
        return EncodedRows(rows, np.array(starts, np.int64), truncated)

    def _ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Texts normalised as a corpus is: NFC, and runs of whitespace are one space."""
        cleaned = [" ".join(unicodedata.normalize("NFC", text).split()) for text in texts]
        return [ids for ids, _ in self.tokenizer.encode(cleaned)]


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens stay of two texts when the longer one gives up a token until both fit; on a tie the second."""
    kept = min(first, max(room - second, -(-room // 2)))
    return kept, min(second, room - kept)
