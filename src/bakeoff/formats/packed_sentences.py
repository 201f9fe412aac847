"""Rows of as many whole sentences as fit: FULL-SENTENCES and DOC-SENTENCES of RoBERTa."""

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bakeoff.corpus.row_index import row_index
from bakeoff.corpus.split import Split
from bakeoff.formats.chunks import mean_length, packed_sentences
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import InputBaseConfig, RowMarks
from bakeoff.formats.relation import Relation
from bakeoff.formats.stream import TokenStream
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

SPECIAL_TOKENS = 2
"""Number of special tokens in every row: [CLS] and [SEP] at its ends."""


class PackedSentencesConfig(InputBaseConfig):
    """The common fields of both formats."""

    crossing: ClassVar[bool]
    """Rows continue with the next document."""
    uneven: ClassVar[bool] = True

    def build(
        self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None
    ) -> "PackedSentences":
        """The format over a split."""
        longest = self.length - SPECIAL_TOKENS
        chunks = row_index(
            split,
            f"packed_sentences-{longest}-{self.crossing:d}",
            lambda sentences, documents: packed_sentences(sentences, documents, longest, self.crossing),
        )
        return PackedSentences(chunks, longest, TokenStream(split, tokenizer, self.isolates))


class FullSentencesConfig(PackedSentencesConfig):
    """Whole sentences of one document or several, with a separator between documents (Liu et al. 2019, section 4.2)."""

    format: Literal["full_sentences"] = "full_sentences"
    """The format's name."""
    isolate: bool = False
    """Tokens see only their own document, where documents share a row; in the paper they see all."""
    crossing: ClassVar[bool] = True

    @property
    @override
    def isolates(self) -> bool:
        return self.isolate


class DocSentencesConfig(PackedSentencesConfig):
    """Whole sentences of one document; rows at a document's end are short."""

    format: Literal["doc_sentences"] = "doc_sentences"
    """The format's name."""
    crossing: ClassVar[bool] = False


class PackedSentences(Format):
    """Rows made of chunks of the stream."""

    def __init__(self, chunks: NDArray[np.int64], longest: int, stream: TokenStream) -> None:
        """`chunks` is (2, n), starts and ends in tokens; each chunk takes at most `longest` positions of the stream."""
        self.starts, self.stops = chunks
        self.longest, self.stream = longest, stream
        self.size = len(self.starts)
        self.tokens_per_example = mean_length(self.size, self._lengths)

    def _lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) numbers of tokens of these rows."""
        first, last = self.stream.positions(self.starts[indices]), self.stream.positions(self.stops[indices] - 1)
        return last - first + 1 + SPECIAL_TOKENS

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(size, 1) numbers of tokens of all rows."""
        return self._lengths(np.arange(self.size))[:, None]

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows made of these chunks; nothing in them is random."""
        first = self.stream.positions(self.starts[indices])[:, None]
        ends = self.stream.positions(self.stops[indices] - 1)[:, None] + 1
        return self.stream.wrapped(*self.stream.rows(first + np.arange(self.longest), ends))
