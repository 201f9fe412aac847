"""Blocks: the documents laid one after the other and cut into rows of equal length."""

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.cut_anew import Cuts, Epoch, document_order
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import CutConfig, RowMarks
from bakeoff.formats.relation import Relation
from bakeoff.formats.stream import Rows, TokenStream
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer import Tokenizer


class BlocksConfig(CutConfig):
    """Contiguous text; no token is lost.

    For causal objectives every document begins with the separator; for other objectives rows have [CLS] and [SEP] at
    their ends, too. Objectives that make a source and a target of the text get rows without special tokens.
    """

    format: Literal["blocks"] = "blocks"
    """The format's name."""
    isolate: bool = True
    """Tokens see only their own document, where documents share a row."""
    context: int = Field(default=0, ge=0)
    """Number of tokens of the previous row at the beginning of each row, for causal objectives; they are read, but not
    predicted again.
    """

    separate_sentences: float = Field(default=0.0, ge=0, le=1)
    """Share of the documents in which a separator stands before each sentence, which is then read like a document by
    itself: models that read forwards see the beginning of a text once a sentence. Drawn once for each document. 0: a
    separator stands before each document alone.
    """
    recurrent: bool = False
    """Row b of a batch continues row b of the previous batch, and the model remembers what it has read (Transformer-XL:
    Dai et al. 2019, arXiv:1901.02860, section 3.2).
    """

    @model_validator(mode="after")
    def _something_to_predict(self) -> Self:
        if self.context >= self.length:
            raise ValueError(f"context: {self.context} of {self.length} tokens leave none to predict; give fewer")
        if self.recurrent and self.isolate:
            raise ValueError("recurrent: rows continue each other over the ends of documents; set isolate to false")
        if self.recurrent and self.context:
            raise ValueError("context: recurrent rows remember the rows before them; set context to 0")
        if self.recurrent and self.cut_anew:
            raise ValueError("cut_anew: recurrent rows continue each other in the order of the text; set it to false")
        return self

    @property
    @override
    def continues(self) -> bool:
        return self.recurrent

    @property
    @override
    def context_tokens(self) -> int:
        return self.context

    @property
    @override
    def isolates(self) -> bool:
        return self.isolate

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None = None) -> "Blocks":
        """The format over a split."""
        return Blocks(self, split, tokenizer, marks)


class Blocks(Format):
    """Rows cut from the stream of tokens."""

    def __init__(self, config: BlocksConfig, split: Split, tokenizer: Tokenizer, marks: RowMarks) -> None:
        self.config, self.marked = config, marks != "none"
        self.stream = TokenStream(split, tokenizer, config.isolate, self.marked, sentences=config.separate_sentences)
        self.separators = len(self.stream.texts) - 1
        self.running = marks != "ends"
        self.context = config.context
        self.length = config.length if self.running else config.length - 2
        self.step = self.length - self.context
        self.advance = config.length if config.recurrent else None
        if config.recurrent:  # whole rows only, for padding would be remembered; what is left over is not read
            self.size = self.stream.total // self.length
            self.left_over = int(self.stream.total % self.length > 0)
            self.tokens_per_example = float(config.length)
        else:
            self.size = 1 + max(0, -(-(self.stream.total - self.length) // self.step))
            read = self.stream.total + (self.size - 1) * self.context
            self.tokens_per_example = read / self.size + (config.length - self.length)
        self.streams = Cuts(self.stream, self._of_epoch if config.cut_anew else None)

    def _of_epoch(self, epoch: Epoch) -> TokenStream:
        """The documents in another order, from a random token of the first row on."""
        split, tokenizer = self.stream.split, self.stream.tokenizer
        order = document_order(len(split.documents) - 1, epoch)
        bounds = np.full(1, min(self.length, self.stream.total), np.int64)
        begin = int(epoch.draws(np.zeros(1, np.int64), "begin").integers("begin", bounds)[0])
        return TokenStream(
            split, tokenizer, self.config.isolate, self.marked, order, begin, self.config.separate_sentences
        )

    def _rows(self, stream: TokenStream, indices: NDArray[np.int64]) -> Rows:
        return stream.rows(stream.begin + indices[:, None] * self.step + np.arange(self.length + 1), stream.end)

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows of the stream; nothing in them is random but where they are cut in later epochs."""
        ids, documents, sources = self.streams.rows(indices, draws, self._rows)
        if not self.running:
            return self.stream.wrapped(ids[:, :-1], documents[:, :-1], sources[:, :-1])
        ids_of_row = np.where(documents[:, :-1] > 0, ids[:, :-1], self.stream.tokenizer.pad)
        return Examples(
            Row(ids_of_row, documents=documents[:, :-1]),
            sources=sources[:, :-1],
            following=ids[:, 1:],
            context=np.where(indices > 0, self.context, 0) if self.context else None,
        )
