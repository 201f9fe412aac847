"""Texts and pairs of texts as token ids, in the format that pre-training used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.reading.aligned import clean
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.offsets import PlacedTokens
from bakeoff.tokenizer.tokenizer import Tokenizer

Truncation = Literal["head", "head+tail", "windows"]
"""The part of a long text that is read; see `FinetuneConfig.truncate`."""

SHORTEST = 8
"""The fewest tokens that a row may be cut to: room for the special tokens and for some tokens of both texts."""


@dataclass(frozen=True)
class EncodedRows:
    """N rows of token ids."""

    ids: list[NDArray[np.int64]]
    """The N arrays of token ids, each as long as its row, special tokens included."""
    second: NDArray[np.int64]
    """(N,) the position at which the second text starts; the length of the row where there is none."""
    truncated: int
    """The number of texts, or pairs, that were too long for a row."""
    owners: NDArray[np.int64] | None = None
    """(N,) the index of the text, or pair, of each row, where one may have several rows; None: each has one row."""
    lost: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(P,) the number of tokens of each text, or pair, that no row has."""
    tokens: int = 0
    """The number of tokens of all texts before any was cut, special tokens left out."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) the number of tokens of each row."""
        return np.array([len(ids) for ids in self.ids], np.int64)


@dataclass(frozen=True)
class PairWindows:
    """N windows over pairs of texts, as rows; each has a stretch of the second text."""

    encoded: EncodedRows
    """The N rows; the rows of a pair stand one after the other."""
    owners: NDArray[np.int64]
    """(N,) the index of the pair of each row, in rising order; every pair has at least one row."""
    first: NDArray[np.int64]
    """(N,) the index in the second text of the first token of the row's stretch."""
    counts: NDArray[np.int64]
    """(N,) the number of tokens of the stretch, which begins in the row at `encoded.second`."""
    whole: NDArray[np.int64]
    """(N,) the position of the special token that has seen the whole row: the first, or the last where [CLS] is last or
    the model reads forwards."""
    cut: int
    """The number of first texts that were too long, and were cut."""


def check_length(model: ModelConfig, length: int) -> None:
    """Refuse a length of rows that a model cannot read.

    Raises:
        UserError: the length is more than the model has positions for, or less than SHORTEST.
    """
    longest = model.longest_input
    if longest is not None and length > longest:
        raise UserError(f"length: {length} is more than the {longest} positions that the model has")
    if length < SHORTEST:
        raise UserError(f"length: {length} is too short; give at least {SHORTEST}")


@dataclass(frozen=True)
class PlacedRows:
    """A text, or a pair, as W rows (several where it is read in windows), and the position of each of its tokens."""

    encoded: EncodedRows
    """The W rows, as `InputFormat.encode` makes them."""
    sides: list[PlacedTokens]
    """The tokens of each of the one or two texts, with their characters in the original text."""
    positions: list[list[tuple[int, int, int]]]
    """(W,) a list for each row, with an entry for each token of a text: its position in the row, the side of its text
    (0 or 1), and its index among the side's tokens."""


class InputFormat:
    """The format of rows: [CLS] A [SEP] for a text, and [CLS] A [SEP] B [SEP] for a pair of texts.

    A decoder alone reads [SEP] A and [SEP] A [SEP] B, as documents start. A decoder after an encoder reads the rows
    with [CLS], and its encoder the same without [CLS], as in pre-training. Where pre-training has put [CLS] last, as
    XLNet does, the rows are A [SEP] [CLS] and A [SEP] B [SEP] [CLS].

    Attributes:
        length: the most tokens of a row.
        truncate: the part of a longer text that is read.
        pad: id of the padding token.
        segments: whether rows have segment ids: 1 for the second text, and 2 for [CLS] where it is last.
        start_last: whether [CLS] is last.
        reads_forwards: whether a position sees none of the positions after it.
        has_source: whether the model is a decoder that reads a source through an encoder.
        prompt: ids that such a decoder reads before the target.
        before_source: ids that the source of such a decoder begins with, before its text.
        marks_begin_words: whether a word begins at the mark of its beginning, where that is a token by itself.
    """

    marks_begin_words: bool = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        recipe: Recipe,
        length: int,
        truncate: Truncation = "head",
        separators: int = 1,
    ) -> None:
        """Make the format of a recipe's models, with a number of separators between the texts of a pair.

        Raises:
            UserError: the length is more than the model has positions for, or less than SHORTEST.
        """
        model = recipe.model
        check_length(model, length)
        self.tokenizer, self.length, self.pad, self.truncate = tokenizer, length, tokenizer.pad, truncate
        self.segments = model.embedding.segments >= 2 or any(mixer.reads_segments for mixer in model.mixers)
        self.start_last = recipe.input.start_last
        self.reads_forwards = model.causal and not recipe.reads_both_sides
        self.has_source = model.sequence_to_sequence
        objectives: Sequence[ObjectiveConfig] = recipe.objective
        self.prompt = objectives[0].prompt(tokenizer)
        self.before_source = objectives[0].before_source(tokenizer)
        start, separator = [tokenizer.start], [tokenizer.separator]
        if model.encoder is None:
            self._around = separator, separator * separators, list[int]()
        elif self.start_last:
            self._around = list[int](), separator * separators, separator + start
        else:
            self._around = start, separator * separators, separator

    @property
    def around(self) -> tuple[list[int], list[int], list[int]]:
        """Ids of the special tokens in front of a text, between the two texts of a pair, and after the last text."""
        return self._around

    @property
    def before(self) -> int:
        """The number of special tokens in front of a text."""
        return len(self._around[0])

    @property
    def room(self) -> int:
        """The most tokens that a single text has in a row."""
        return self.length - self.before - len(self._around[2])

    def framed(self, texts: Sequence[NDArray[np.int64]]) -> EncodedRows:
        """The rows of texts that are given as token ids, each cut to `room` tokens."""
        before, _, after = (np.array(part, np.int64) for part in self._around)
        rows = [np.concatenate([before, ids[: self.room], after]) for ids in texts]
        lengths = np.array([len(ids) for ids in texts], np.int64)
        lost = np.maximum(lengths - self.room, 0)
        starts = np.array([len(row) for row in rows], np.int64)
        return EncodedRows(rows, starts, int((lost > 0).sum()), lost=lost, tokens=int(lengths.sum()))

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> EncodedRows:
        """Rows of at most `length` tokens; the longer text of a pair is cut first.

        With windows the longer text of a pair is read in parts, each beside the other text, which has at most half of
        the
        room.

        Args:
            texts: (N,) texts.
            pairs: (N,) second texts, or None.
        """
        nothing = np.zeros(0, np.int64)
        firsts = self.ids(texts)
        seconds = [nothing] * len(firsts) if pairs is None else self.ids(pairs)
        before, between, after = (np.array(part, np.int64) for part in self._around)
        if pairs is None:
            between = nothing
        room = self.length - len(before) - len(between) - len(after)
        rows, starts, owners, lost, truncated = [], [], list[int](), list[int](), 0
        for owner, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            truncated += len(first) + len(second) > room
            lost.append(self._lost(len(first), len(second), room))
            for kept, other in self._cut(first, second, room):
                rows.append(np.concatenate([before, kept, between, other, after]))
                starts.append(len(rows[-1]) if pairs is None else len(before) + len(kept) + len(between))
                owners.append(owner)
        several = np.array(owners, np.int64) if len(rows) > len(firsts) else None
        tokens = sum(map(len, firsts)) + sum(map(len, seconds))
        return EncodedRows(rows, np.array(starts, np.int64), truncated, several, np.array(lost, np.int64), tokens)

    def placed(self, text: str, pair: str | None) -> PlacedRows:
        """The rows of a text, or of a pair, with the position of each of its tokens."""
        encoded = self.encode([text], None if pair is None else [pair])
        sides = self.tokenizer.encode_placed([text] if pair is None else [text, pair])
        between = 0 if pair is None else len(self._around[1])
        room = self.length - self.before - between - len(self._around[2])
        numbers = [np.arange(len(side.ids)) for side in sides] + [np.zeros(0, np.int64)]
        positions = []
        for kept in self._cut(numbers[0], numbers[1], room):
            starts = (self.before, self.before + len(kept[0]) + between)
            positions.append(
                [
                    (start + index, side, token)
                    for side, (start, tokens) in enumerate(zip(starts, kept, strict=True))
                    for index, token in enumerate(tokens.tolist())
                ]
            )
        return PlacedRows(encoded, sides, positions)

    def _cut(
        self, first: NDArray[np.int64], second: NDArray[np.int64], room: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The parts of two texts that are read together, a pair for each window; the second text may be empty."""
        kept, other = longest_first(len(first), len(second), room)
        if self.truncate != "windows" or kept + other == len(first) + len(second):
            yield self._shortened(first, kept), self._shortened(second, other)
            return
        if len(first) >= len(second):
            second = second[: room // 2]
            for window in _windows(first, room - len(second)):
                yield window, second
        else:
            first = first[: room // 2]
            for window in _windows(second, room - len(first)):
                yield first, window

    def _lost(self, first: int, second: int, room: int) -> int:
        """The number of tokens of two texts of these lengths that `_cut` leaves out of every part."""
        if self.truncate == "windows":  # the longer text is read whole
            return 0 if first + second <= room else max(0, min(first, second) - room // 2)
        return first + second - sum(longest_first(first, second, room))

    def _shortened(self, ids: NDArray[np.int64], kept: int) -> NDArray[np.int64]:
        """The `kept` tokens of a text that stay: its beginning, or with head+tail its beginning and its end."""
        if self.truncate != "head+tail" or kept == len(ids):
            return ids[:kept]
        head = kept // 4
        return np.concatenate([ids[:head], ids[len(ids) - kept + head :]])

    def windows(
        self, firsts: Sequence[NDArray[np.int64]], seconds: Sequence[NDArray[np.int64]], longest: int, stride: int
    ) -> PairWindows:
        """Rows of pairs of texts, with as many stretches of each second text as it takes to read all of it.

        The rows have the format of pairs, and a decoder alone has [SEP] after its second text as well, as documents
        end. A stretch overlaps the next one by at least half, so that a span of up to half a stretch is whole in one
        of them.

        Args:
            firsts: (P,) token ids of first texts.
            seconds: (P,) token ids of second texts.
            longest: the most tokens of a first text, but never more than half of the room; the rest is cut off.
            stride: the most tokens from the beginning of one stretch to the beginning of the next.
        """
        before, between, after = (np.array(part, np.int64) for part in self._around)
        after = after if len(after) else between
        room = self.length - len(before) - len(between) - len(after)
        rows: list[NDArray[np.int64]] = []
        stretches: list[tuple[int, int, int, int]] = []
        lost = []
        for owner, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            kept = min(longest, room // 2)
            lost.append(max(0, len(first) - kept))
            opening = np.concatenate([before, first[:kept], between])
            size = self.length - len(opening) - len(after)  # tokens of a stretch
            step, rest = max(1, min(stride, size // 2)), max(0, len(second) - size)
            begins = [*range(0, rest, step), rest]
            for begin in begins:
                part = second[begin : begin + size]
                rows.append(np.concatenate([opening, part, after]))
                stretches.append((owner, begin, len(part), len(opening)))
        owners, begun, counts, starts = np.array(stretches, np.int64).reshape(-1, 4).T
        tokens = sum(map(len, firsts)) + sum(map(len, seconds))
        encoded = EncodedRows(rows, starts, 0, owners, np.array(lost, np.int64), tokens)
        last = self.start_last or self.reads_forwards
        whole = encoded.lengths - 1 if last else np.zeros(len(rows), np.int64)
        return PairWindows(encoded, owners, begun, counts, whole, int((encoded.lost > 0).sum()))

    def ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The token ids of texts, which are normalised as a corpus is."""
        return [ids for ids, _ in self.tokenizer.encode([clean(text) for text in texts])]


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """The lengths of two texts after the longer one has given up tokens until both fit; on a tie the second does."""
    kept = min(first, max(room - second, -(-room // 2)))
    return kept, min(second, room - kept)


def _windows(ids: NDArray[np.int64], room: int) -> Iterator[NDArray[np.int64]]:
    """Windows of `room` tokens over a text; the last one overlaps the one before rather than being a short rest."""
    for begin in range(0, len(ids), room):
        begin = max(0, min(begin, len(ids) - room))
        yield ids[begin : begin + room]
