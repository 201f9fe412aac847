"""Pairs: [CLS] A [SEP] B [SEP], where A and B are runs of sentences of one document (BERT, ALBERT), or one each."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.corpus.row_index import index_in_memory, row_index
from bakeoff.corpus.split import Split
from bakeoff.formats.chunks import full_chunks, mean_length, sentence_chunks, sentence_pairs
from bakeoff.formats.cut_anew import Chunks, Cuts, Epoch
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import CutConfig, InputBaseConfig, RowMarks
from bakeoff.formats.relation import Relation, TwoSegments
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer import Tokenizer

SPECIAL_TOKENS = 3
"""Number of special tokens in every row: [CLS] and two [SEP]."""


class PairConfig(InputBaseConfig):
    """The common fields of the formats of pairs; an objective may swap or replace the segments."""

    length: int = Field(gt=SPECIAL_TOKENS + 2)
    """T, the number of tokens in a row, its three special tokens included; shorter rows are padded."""
    pairs: ClassVar[bool] = True
    uneven: ClassVar[bool] = True
    single: ClassVar[bool] = False
    """Each segment is one sentence, and an objective replaces it by one sentence."""


class SegmentPairConfig(PairConfig, CutConfig):
    """Two neighbouring segments, cut where a sentence starts (Devlin et al. 2019).

    If an objective relates the segments, each row holds two whole sentences or more: a segment that breaks off in the
    middle of a sentence would give away that it comes last. Otherwise rows are as full as they can be, and a row that
    ends inside a sentence is followed by one that starts with that sentence.
    """

    format: Literal["segment_pair"] = "segment_pair"
    """The format's name."""
    short: float = Field(default=0.0, ge=0, le=1)
    """Share of the rows that are shorter, their lengths drawn evenly from 2 tokens on; BERT's code has 0.1."""

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None) -> "SegmentPairs":
        """The format over a split; `relation` arranges the two segments and labels them."""
        longest = self.length - SPECIAL_TOKENS
        kind = full_chunks if relation is None else sentence_chunks
        find = partial(kind, longest=longest, short=self.short)
        chunks = row_index(split, f"{kind.__name__}-{longest}-{self.short:g}", find)
        return SegmentPairs(self, chunks, find if self.cut_anew else None, split, tokenizer, relation)


class SentencePairConfig(PairConfig, CutConfig):
    """Two sentences that follow each other (Liu et al. 2019, section 4.2): rows are short, batches should be large."""

    format: Literal["sentence_pair"] = "sentence_pair"
    """The format's name."""
    single: ClassVar[bool] = True

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None) -> "SegmentPairs":
        """The format over a split; `relation` arranges the two segments and labels them."""
        longest = self.length - SPECIAL_TOKENS
        find = partial(sentence_pairs, longest=longest)
        chunks = row_index(split, f"sentence_pairs-{longest}", find)
        return SegmentPairs(self, chunks, find if self.cut_anew else None, split, tokenizer, relation)


class SegmentPairs(Format):
    """Chunks of the text, each cut in two where a sentence starts."""

    def __init__(
        self,
        config: PairConfig,
        chunks: NDArray[np.int64],
        anew: Callable[..., Sequence[NDArray[np.int64]]] | None,
        split: Split,
        tokenizer: Tokenizer,
        relation: Relation | None,
    ) -> None:
        """`chunks` is (2, n), the starts and ends of the chunks; `anew` finds those of a later epoch; None: they stay.

        `anew` takes what `row_index` gives it, and the epoch as `anew`.
        """
        self.split = split
        self.tokenizer = tokenizer
        self.length, self.single = config.length, config.single
        self.relation = relation
        self.sentences = np.asarray(split.sentences)
        self.size = chunks.shape[1]
        self.first, self._find = Chunks(chunks, self.size), anew
        self.chunks = Cuts(self.first, None if anew is None else self._of_epoch)
        self.tokens_per_example = mean_length(self.size, self._lengths)

    def _of_epoch(self, epoch: Epoch) -> Chunks:
        assert self._find is not None
        bounds = index_in_memory(self.split, partial(self._find, anew=epoch))
        return Chunks(bounds, self.size, epoch) if bounds.size else self.first  # no other pair of sentences may fit

    def _lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) numbers of tokens of these rows in the first epoch, before any relation."""
        starts, stops = self.first.of(indices)
        return stops - starts + SPECIAL_TOKENS

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(size, 1) numbers of tokens of all rows."""
        return self._lengths(np.arange(self.size))[:, None]

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows made of these chunks, cut and arranged anew in every epoch."""
        starts, stops = self.chunks.rows(indices, draws, Chunks.of)
        cuts = self._cuts(starts, stops, draws)
        pairs = TwoSegments(starts, cuts - starts, cuts, stops - cuts, self.single)
        labels = None
        if self.relation is not None:
            pairs, labels = self.relation.arrange(pairs, self.split, self.length - SPECIAL_TOKENS, draws)
        return self._rows(pairs, labels)

    def _cuts(self, starts: NDArray[np.int64], stops: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """(N,) the start of the second segment: at a sentence inside the chunk, else at a word, else at any token.

        The sentence is the one nearest to a position drawn evenly. An even draw among sentences would too often choose
        one near the end, because a chunk ends with short sentences that still fit, and the lengths of the segments
        would then tell their order.
        """
        first = np.searchsorted(self.sentences, starts, side="right")
        count = np.searchsorted(self.sentences, stops, side="left") - first
        wished = starts + draws.uniform("cut", 1)[:, 0] * (stops - starts)
        # In whole numbers: for others numpy would make a copy of all sentences.
        above = np.clip(
            np.searchsorted(self.sentences, np.ceil(wished).astype(np.int64)),
            first,
            np.maximum(first + count - 1, first),
        )
        below = np.maximum(above - 1, first)
        nearer = wished - self.sentences[below] < self.sentences[above] - wished
        cuts = self.sentences[np.where(nearer, below, above)]
        single = np.flatnonzero(count == 0)
        if len(single):
            positions = starts[single, None] + np.arange(1, self.length)  # (n, T - 1)
            inside = positions < stops[single, None]
            words = inside & self.split.starts_word(np.minimum(positions, len(self.split.tokens) - 1))
            words[~words.any(1)] = inside[~words.any(1)]
            chosen = (draws.uniform("cut word", 1)[single, 0] * words.sum(1)).astype(np.int64)
            cuts[single] = starts[single] + 1 + (np.cumsum(words, 1) == chosen[:, None] + 1).argmax(1)
        return cuts

    def _rows(self, pairs: TwoSegments, labels: NDArray[np.int64] | None) -> Examples:
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
        padding_mask = column < first + second + SPECIAL_TOKENS
        segments = (padding_mask & (column >= first + 2)).astype(np.int64)
        return Examples(Row(ids, segments, documents=padding_mask.astype(np.int32)), sources, relation=labels)
