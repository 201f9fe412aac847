"""Rows of as many whole sentences as fit: FULL-SENTENCES and DOC-SENTENCES of RoBERTa."""

from functools import cached_property, partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bakeoff.corpus.row_index import index_in_memory, row_index
from bakeoff.corpus.split import Split
from bakeoff.formats.chunks import mean_length, packed_sentences
from bakeoff.formats.cut_anew import Chunks, Cuts, Epoch, document_order, shuffled_text
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import CutConfig, RowMarks
from bakeoff.formats.relation import Relation
from bakeoff.formats.stream import Rows, TokenStream
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

SPECIAL_TOKENS = {"ends": 2, "documents": 1}
"""Number of special tokens in every row: [CLS] and [SEP] at its ends, or a separator before it."""


class PackedSentencesConfig(CutConfig):
    """The common fields of both formats.

    For causal objectives each row begins with a separator, and ends with the prediction of another one.
    """

    crossing: ClassVar[bool]
    """Rows continue with the next document."""
    uneven: ClassVar[bool] = True

    def build(
        self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None
    ) -> "PackedSentences":
        """The format over a split."""
        longest = self.length - SPECIAL_TOKENS[marks]
        find = partial(packed_sentences, longest=longest, crossing=self.crossing)
        chunks = row_index(split, f"packed_sentences-{longest}-{self.crossing:d}", find)
        return PackedSentences(self, chunks, TokenStream(split, tokenizer, self.isolates), marks)


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


class Packed(NamedTuple):
    """The rows of an epoch, and the stream that they are cut from."""

    chunks: Chunks
    """The starts and stops of rows, in tokens in the order of the stream's documents."""
    stream: TokenStream
    """The documents in their order."""


class PackedSentences(Format):
    """Rows made of chunks of the stream."""

    def __init__(
        self, config: PackedSentencesConfig, chunks: NDArray[np.int64], stream: TokenStream, marks: RowMarks
    ) -> None:
        """`chunks` is (2, n), starts and ends in tokens; each chunk takes at most `longest` positions of the stream.

        With `marks` of documents each row begins after a separator, and another one follows its last token.
        """
        self.config, self.running, self.special = config, marks == "documents", SPECIAL_TOKENS[marks]
        self.longest = config.length - self.special
        self.size = chunks.shape[1]
        if self.running:  # after each row, and within rows before each document but the first
            self.separators = self.size + len(stream.texts) - 1 - int(np.isin(stream.texts[:-1], chunks[0]).sum())
        self.first = Packed(Chunks(chunks, self.size), stream)
        self.packed = Cuts(self.first, self._of_epoch if config.cut_anew else None)
        self.tokens_per_example = mean_length(self.size, self._lengths)

    def _of_epoch(self, epoch: Epoch) -> Packed:
        """Documents in another order where rows cross their ends, else with shorter first rows."""
        stream, find = self.first.stream, partial(packed_sentences, longest=self.longest, anew=epoch)
        split, tokenizer = stream.split, stream.tokenizer
        if self.config.crossing:
            order = document_order(len(split.documents) - 1, epoch)
            stream = TokenStream(split, tokenizer, self.config.isolates, order=order)
            found = [np.stack(find(*stretch, crossing=True)) for stretch in shuffled_text(split, order)]
            chunks = np.concatenate(found, axis=1)
        else:
            chunks = index_in_memory(split, partial(find, crossing=False))
        return Packed(Chunks(chunks, self.size, epoch), stream)

    def _bounds(self, packed: Packed, indices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) the first and the last position in the stream of each row."""
        first, last = packed.chunks.of(indices)
        first = packed.stream.positions(first)
        last -= 1  # in place: of very many rows at once
        return first, packed.stream.positions(last)

    def _lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) numbers of tokens of these rows in the first epoch."""
        first, last = self._bounds(self.first, indices)
        return last - first + 1 + self.special

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(size, 1) numbers of tokens of all rows in the first epoch."""
        return self._lengths(np.arange(self.size))[:, None]

    def _rows(self, packed: Packed, indices: NDArray[np.int64]) -> Rows:
        first, last = self._bounds(packed, indices)
        return packed.stream.rows(first[:, None] + np.arange(self.longest), last[:, None] + 1)

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows made of these chunks; nothing in them is random but where they are cut in later epochs."""
        rows = self.packed.rows(indices, draws, self._rows)
        return self.first.stream.led(*rows) if self.running else self.first.stream.wrapped(*rows)
