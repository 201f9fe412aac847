"""Segment pairs: [CLS] A [SEP] B [SEP], where A and B are runs of sentences of one document (BERT, ALBERT)."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.config import Config
from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.objectives.example import Examples

SPECIAL_TOKENS = 3
"""[CLS] and two [SEP] in every row."""


class SegmentPairConfig(Config):
    """Two neighbouring segments, cut where a sentence starts; a relation objective may swap or replace them."""

    format: Literal["segment_pair"] = "segment_pair"
    """The format's name."""
    length: int = Field(gt=SPECIAL_TOKENS + 2)
    """T, tokens in a row, its three special tokens included; shorter rows, at a document's end, are padded."""

    def build(self, split: Split, tokenizer: Tokenizer, relation: "Relation | None") -> "SegmentPair":
        """The format over a split; `relation` arranges the two segments and labels them."""
        return SegmentPair(self, split, tokenizer, relation)


@dataclass
class Pairs:
    """Two runs of tokens for each of N examples."""

    first: NDArray[np.int64]
    """(N,) where the first segment starts in the split's tokens."""
    first_length: NDArray[np.int64]
    """(N,) its number of tokens, at least 1."""
    second: NDArray[np.int64]
    """(N,) where the second segment starts."""
    second_length: NDArray[np.int64]
    """(N,) its number of tokens, at least 1."""

    def swapped(self, chosen: NDArray[np.bool_]) -> "Pairs":
        """The same with first and second segment exchanged where (N,) chosen."""
        return Pairs(
            np.where(chosen, self.second, self.first),
            np.where(chosen, self.second_length, self.first_length),
            np.where(chosen, self.first, self.second),
            np.where(chosen, self.first_length, self.second_length),
        )


class Relation(Protocol):
    """How an objective arranges the two segments of a pair."""

    def arrange(self, pairs: Pairs, split: Split, longest: int, draws: Draws) -> tuple[Pairs, NDArray[np.int64]]:
        """The arranged pairs, each of at most `longest` tokens, and (N,) the label of each."""
        ...


class SegmentPair:
    """Chunks of as much text as fits, each starting where a sentence starts, cut in two where one starts.

    Where an objective relates the segments, chunks are whole sentences, two at least: a segment that breaks off in the
    middle of a sentence would give away that it comes last. Else chunks are full rows; one that ends inside a sentence
    is followed by one that starts with that sentence.
    """

    def __init__(
        self, config: SegmentPairConfig, split: Split, tokenizer: Tokenizer, relation: Relation | None
    ) -> None:
        self.split = split
        self.tokenizer = tokenizer
        self.length = config.length
        self.relation = relation
        self.sentences = np.asarray(split.sentences)
        find = full_chunks if relation is None else sentence_chunks
        self.starts, self.stops = find(self.sentences, np.asarray(split.documents), config.length - SPECIAL_TOKENS)
        self.size = len(self.starts)
        self.tokens_per_example = float((self.stops - self.starts).mean()) + SPECIAL_TOKENS if self.size else 0.0

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows for these chunks, cut and arranged anew in every epoch."""
        starts, stops = self.starts[indices], self.stops[indices]
        cuts = self._cuts(starts, stops, draws)
        pairs = Pairs(starts, cuts - starts, cuts, stops - cuts)
        labels = None
        if self.relation is not None:
            pairs, labels = self.relation.arrange(pairs, self.split, self.length - SPECIAL_TOKENS, draws)
        return self._rows(pairs, labels)

    def _cuts(self, starts: NDArray[np.int64], stops: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """(N,) where the second segment starts: at a sentence inside the chunk, else a word, else any token."""
        first = np.searchsorted(self.sentences, starts, side="right")
        count = np.searchsorted(self.sentences, stops, side="left") - first
        cuts = self.sentences[np.minimum(first + draws.integers("cut", np.maximum(count, 1)), len(self.sentences) - 1)]
        single = np.flatnonzero(count == 0)
        if len(single):
            places = starts[single, None] + np.arange(1, self.length)  # (n, T - 1)
            inside = places < stops[single, None]
            words = inside & self.split.starts_word(np.minimum(places, len(self.split.tokens) - 1))
            words[~words.any(1)] = inside[~words.any(1)]
            chosen = (draws.uniform("cut word", 1)[single, 0] * words.sum(1)).astype(np.int64)
            cuts[single] = starts[single] + 1 + (np.cumsum(words, 1) == chosen[:, None] + 1).argmax(1)
        return cuts

    def _rows(self, pairs: Pairs, labels: NDArray[np.int64] | None) -> Examples:
        column = np.arange(self.length)
        first, second = pairs.first_length[:, None], pairs.second_length[:, None]
        in_first = (column >= 1) & (column <= first)
        in_second = (column >= first + 2) & (column < first + second + 2)
        sources = np.full((len(first), self.length), -1, np.int64)
        sources = np.where(in_first, pairs.first[:, None] + column - 1, sources)
        sources = np.where(in_second, pairs.second[:, None] + column - first - 2, sources)
        ids = self.split.tokens[np.maximum(sources, 0)].astype(np.int64)
        ids[sources < 0] = self.tokenizer.pad
        ids[:, 0] = self.tokenizer.start
        ids[(column == first + 1) | (column == first + second + 2)] = self.tokenizer.separator
        real = column < first + second + SPECIAL_TOKENS
        return Examples(
            ids=ids,
            documents=real.astype(np.int32),
            sources=sources,
            segments=(real & (column >= first + 2)).astype(np.int64),
            relation=labels,
        )


def sentence_chunks(
    sentences: NDArray[np.int64], documents: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the chunks of whole sentences of all documents start and stop, each as long as fits.

    What cannot be part of a chunk of two sentences is left out: documents of one sentence, a last sentence that no
    other one fits beside, and sentences too long.

    Args:
        sentences: (S + 1,) where sentences start, and the end of the text.
        documents: (D + 1,) where documents start, and the end of the text.
        longest: the most tokens of a chunk.

    Returns:
        Two arrays of (chunks,).
    """
    _, reach = _reach(sentences, documents, longest)
    stops = (np.searchsorted(sentences, reach, side="right") - 1).tolist()  # the sentence behind the last that fits
    chosen: list[int] = []
    index, count = 0, len(stops)
    while index < count:
        if stops[index] - index >= 2:
            chosen.append(index)
            index = stops[index]
        else:
            index += 1
    first = np.array(chosen, np.int64)
    return sentences[first], sentences[np.array(stops, np.int64)[first]]


def full_chunks(
    sentences: NDArray[np.int64], documents: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the chunks that fill their rows start and stop.

    Args:
        sentences: (S + 1,) where sentences start, and the end of the text.
        documents: (D + 1,) where documents start, and the end of the text.
        longest: the most tokens of a chunk.

    Returns:
        Two arrays of (chunks,); chunks of a single token, which cannot be cut in two, are left out.
    """
    heads = sentences[:-1]
    ends, reach = _reach(sentences, documents, longest)
    following = (
        np.searchsorted(sentences, reach, side="right") - 1
    )  # the sentence that is cut at the reach, or starts there
    starts: list[int] = []
    head, end, reached, follow = heads.tolist(), ends.tolist(), reach.tolist(), following.tolist()
    index, count = 0, len(head)
    while index < count:
        starts.append(head[index])
        if reached[index] == end[index]:
            index = int(np.searchsorted(sentences, end[index]))
        elif follow[index] > index:
            index = follow[index]
        else:  # one sentence longer than a chunk: cut on until what is left fits
            start, sentence_end = head[index] + longest, int(sentences[index + 1])
            while start < sentence_end:
                starts.append(start)
                start += longest
            index += 1
    first = np.array(starts, np.int64)
    last = np.minimum(first + longest, documents[np.searchsorted(documents, first, side="right")])
    # What is left of an over-long sentence runs on into the sentences behind it, which start chunks of their own.
    long = ~np.isin(first, heads)
    last[long] = np.minimum(last[long], sentences[np.searchsorted(sentences, first[long], side="right")])
    kept = last - first >= 2
    return first[kept], last[kept]


def _reach(
    sentences: NDArray[np.int64], documents: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(S,) where each sentence's document ends, and how far a chunk that starts with the sentence can reach."""
    ends = documents[np.searchsorted(documents, sentences[:-1], side="right")]
    return ends, np.minimum(sentences[:-1] + longest, ends)
