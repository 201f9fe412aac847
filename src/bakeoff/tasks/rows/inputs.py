"""Texts and pairs of texts as token ids, in the format that pre-training used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""Fewest tokens that a row may be cut to: special tokens and something of both texts."""


@dataclass(frozen=True)
class EncodedRows:
    """Rows of token ids; N rows."""

    ids: list[NDArray[np.int64]]
    """N arrays of (length of the row,) token ids, special tokens included."""
    second: NDArray[np.int64]
    """(N,) where the second text starts; the length of the row where there is none."""
    truncated: int
    """How many texts, or pairs, were too long."""
    owners: NDArray[np.int64] | None = None
    """(N,) the text, or pair, of each row, where one may have several; None: each has its own."""

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,) tokens of each row."""
        return np.array([len(ids) for ids in self.ids], np.int64)


@dataclass(frozen=True)
class PairWindows:
    """Pairs of texts as rows, each with a stretch of its second text; N rows."""

    encoded: EncodedRows
    """N rows, those of a pair one behind the other."""
    owners: NDArray[np.int64]
    """(N,) the pair of each, in rising order; every pair has a row at least."""
    first: NDArray[np.int64]
    """(N,) the token of the second text with which the row's stretch begins."""
    counts: NDArray[np.int64]
    """(N,) tokens of the stretch; they stand in the row from `encoded.second` on."""
    whole: NDArray[np.int64]
    """(N,) the place of the special token that has seen all of the row: the first, or the last where [CLS] is last or
    the model reads forwards."""
    cut: int
    """How many first texts were too long."""


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


@dataclass(frozen=True)
class PlacedRows:
    """A text, or a pair, as rows, with where each token of it stands; W rows, which are several where it is cut."""

    encoded: EncodedRows
    """W rows, as `InputFormat.encode` makes them."""
    sides: list[PlacedTokens]
    """The tokens of each text of the row, with their positions in the original text."""
    places: list[list[tuple[int, int, int]]]
    """(W,) for each token of a text in the row its place there, the side, and which of the side's tokens it is."""


class InputFormat:
    """[CLS] A [SEP] and [CLS] A [SEP] B [SEP]; decoders alone: [SEP] A and [SEP] A [SEP] B, as documents start.

    These are also the rows of a decoder behind an encoder, which reads the same without [CLS], as in pre-training.
    Where pre-training has put [CLS] last, as XLNet does, it is: A [SEP] [CLS] and A [SEP] B [SEP] [CLS].

    Attributes:
        length: the most tokens of a row.
        truncate: what is read of longer ones.
        pad: id of the padding token.
        segments: whether rows have segment ids, 1 for the second text, and 2 for [CLS] where it is last.
        start_last: whether [CLS] is last.
        reads_forwards: whether a position knows nothing of those behind it.
        has_source: whether a decoder reads a source through an encoder.
        prompt: ids that such a decoder reads before what it writes.
        before_source: ids that such a source begins with, before its text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        recipe: Recipe,
        length: int,
        truncate: Truncation = "head",
        separators: int = 1,
    ) -> None:
        """A format for the models of a recipe, with so many separators between the texts of a pair.

        Raises:
            UserError: the length is more than the model has positions for, or too short for anything.
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
        """Ids of the special tokens in front of a text, between the two of a pair, and behind the last."""
        return self._around

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
        """Rows of at most `length` tokens; the longer text of a pair is cut first.

        In windows a pair's longer text is read beside the other one, which has half of the room at most.

        Args:
            texts: (N,) texts.
            pairs: (N,) second texts, or None.
        """
        nothing = np.zeros(0, np.int64)
        firsts = self.ids(texts)
        seconds = [nothing] * len(firsts) if pairs is None else self.ids(pairs)
        before, between, behind = (np.array(part, np.int64) for part in self._around)
        if pairs is None:
            between = nothing
        room = self.length - len(before) - len(between) - len(behind)
        rows, starts, owners, truncated = [], [], list[int](), 0
        for owner, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            truncated += len(first) + len(second) > room
            for kept, other in self._cut(first, second, room):
                rows.append(np.concatenate([before, kept, between, other, behind]))
                starts.append(len(rows[-1]) if pairs is None else len(before) + len(kept) + len(between))
                owners.append(owner)
        several = np.array(owners, np.int64) if len(rows) > len(firsts) else None
        return EncodedRows(rows, np.array(starts, np.int64), truncated, several)

    def placed(self, text: str, pair: str | None) -> PlacedRows:
        """The rows of a text, or of a pair, with where each of its tokens stands."""
        encoded = self.encode([text], None if pair is None else [pair])
        sides = self.tokenizer.encode_placed([text] if pair is None else [text, pair])
        between = 0 if pair is None else len(self._around[1])
        room = self.length - self.before - between - len(self._around[2])
        numbers = [np.arange(len(side.ids)) for side in sides] + [np.zeros(0, np.int64)]
        places = []
        for kept in self._cut(numbers[0], numbers[1], room):
            starts = (self.before, self.before + len(kept[0]) + between)
            places.append(
                [
                    (start + place, side, token)
                    for side, (start, tokens) in enumerate(zip(starts, kept, strict=True))
                    for place, token in enumerate(tokens.tolist())
                ]
            )
        return PlacedRows(encoded, sides, places)

    def _cut(
        self, first: NDArray[np.int64], second: NDArray[np.int64], room: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """What is read of two texts together, once for each window; the second may be empty."""
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

    def _shortened(self, ids: NDArray[np.int64], kept: int) -> NDArray[np.int64]:
        """The tokens that stay of a text."""
        if self.truncate != "head+tail" or kept == len(ids):
            return ids[:kept]
        head = kept // 4
        return np.concatenate([ids[:head], ids[len(ids) - kept + head :]])

    def windows(
        self, firsts: Sequence[NDArray[np.int64]], seconds: Sequence[NDArray[np.int64]], longest: int, stride: int
    ) -> PairWindows:
        """Rows of pairs of texts, of as many stretches of the second text as it takes to read all of it.

        The rows are those of pairs; behind the second text of a decoder, which has nothing there, comes [SEP], as
        documents end. A stretch overlaps the next by half at least, so that what is shorter is whole in one of them.

        Args:
            firsts: (P,) token ids of first texts.
            seconds: (P,) token ids of second texts.
            longest: the most tokens of a first text, but never more than half of the room; the rest is cut off.
            stride: tokens from the beginning of one stretch to that of the next, at most.
        """
        before, between, behind = (np.array(part, np.int64) for part in self._around)
        behind = behind if len(behind) else between
        room = self.length - len(before) - len(between) - len(behind)
        rows: list[NDArray[np.int64]] = []
        places: list[tuple[int, int, int, int]] = []
        cut = 0
        for owner, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            kept = min(longest, room // 2)
            cut += len(first) > kept
            opening = np.concatenate([before, first[:kept], between])
            own = self.length - len(opening) - len(behind)  # tokens of a stretch
            step, rest = max(1, min(stride, own // 2)), max(0, len(second) - own)
            begins = [*range(0, rest, step), rest]
            for begin in begins:
                part = second[begin : begin + own]
                rows.append(np.concatenate([opening, part, behind]))
                places.append((owner, begin, len(part), len(opening)))
        owners, begun, counts, starts = np.array(places, np.int64).reshape(-1, 4).T
        encoded = EncodedRows(rows, starts, 0)
        last = self.start_last or self.reads_forwards
        whole = encoded.lengths - 1 if last else np.zeros(len(rows), np.int64)
        return PairWindows(encoded, owners, begun, counts, whole, cut)

    def ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The tokens of texts, which are normalised as a corpus is."""
        return [ids for ids, _ in self.tokenizer.encode([clean(text) for text in texts])]


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens stay of two texts when the longer one gives up a token until both fit; on a tie the second."""
    kept = min(first, max(room - second, -(-room // 2)))
    return kept, min(second, room - kept)


def _windows(ids: NDArray[np.int64], room: int) -> Iterator[NDArray[np.int64]]:
    """A text in parts of `room` tokens, the last of which overlaps the one before rather than being a short rest."""
    for begin in range(0, len(ids), room):
        begin = max(0, min(begin, len(ids) - room))
        yield ids[begin : begin + room]
