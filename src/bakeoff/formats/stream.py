"""The text as one stream: document d takes positions documents[d] + d to documents[d + 1] + d, a separator first.

Without separators, document d takes positions documents[d] to documents[d + 1] - 1. Where sentences are separated, they
are documents for the stream.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.formats.cut_anew import runs
from bakeoff.formats.example import Examples
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer import Tokenizer

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]


class TokenStream:
    """Rows of the stream; N rows, L positions.

    Args:
        split: the text.
        tokenizer: its tokenizer.
        isolate: documents that share a row have different document ids.
        marked: a separator stands before each document.
        order: (D,) the documents in the order in which they follow each other; None: that of the text.
        begin: the position at which the stream begins; what stands before it comes at the end.
        sentences: the share of the documents whose sentences are separated.

    Attributes:
        texts: (D + 1,) where documents, and separated sentences, begin in the text, and its end.
        end: the position at which it ends.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        isolate: bool,
        marked: bool = True,
        order: NDArray[np.int64] | None = None,
        begin: int = 0,
        sentences: float = 0.0,
    ) -> None:
        self.split, self.tokenizer, self.isolate, self.begin = split, tokenizer, isolate, begin
        self.texts = bounds = separated_texts(split, sentences)
        count = len(bounds) - 1
        self.marks = int(marked)  # separators before each document
        if order is not None:
            if sentences:  # those of a document stay in theirs
                order = runs(*(np.searchsorted(bounds, split.documents[each]) for each in (order, order + 1)))
            sizes = np.diff(bounds)[order]
            bounds = np.zeros(count + 1, np.int64)
            np.cumsum(sizes, out=bounds[1:])
        self.order = order
        self.bounds = bounds
        self.starts = bounds[:-1] + self.marks * np.arange(count)  # of documents, in the stream
        self.total = len(split.tokens) + self.marks * count
        self.end = self.total + begin
        if begin:  # the documents that begin before it come once more
            again = int(np.searchsorted(self.starts, begin))
            self.starts = np.concatenate([self.starts, self.starts[:again] + self.total])
            if order is not None:
                self.order = np.concatenate([order, order[:again]])

    def positions(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions in the stream of these tokens, counted in the order of its documents."""
        return tokens + self.marks * np.searchsorted(self.bounds, tokens, side="right")

    def tokens(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The text's tokens at positions of the stream; for a separator the token before it, or the text's first."""
        return cast(
            NDArray[np.int64],
            np.maximum(positions - self.marks * np.searchsorted(self.starts, positions, side="right"), 0),
        )

    def rows(self, positions: NDArray[np.int64], ends: NDArray[np.int64] | int) -> Rows:
        """Ids, documents and positions in the text, at positions of the stream.

        Args:
            positions: (N, L) positions in the stream.
            ends: (N, 1), or one for all rows: the position from which on a row is empty.

        Returns:
            (N, L) ids, the separator's at empty positions; document ids, counted from 1 in each row, 0 at empty
            positions; and positions in the text, -1 for separators and at empty positions.
        """
        owners = np.searchsorted(self.starts, positions, side="right") - 1
        if self.order is None:
            sources = positions - self.marks * (owners + 1)
        else:
            sources = positions - self.starts[owners] - self.marks + self.texts[self.order[owners]]
        sources[((self.marks > 0) & (positions == self.starts[owners])) | (positions >= ends)] = -1
        ids = np.where(sources >= 0, self.split.tokens[np.maximum(sources, 0)], self.tokenizer.separator)
        documents = (owners - owners[:, :1] + 1) if self.isolate else np.ones(ids.shape)
        return ids.astype(np.int64), np.where(positions >= ends, 0, documents).astype(np.int32), sources

    def led(self, ids: NDArray[np.int64], documents: NDArray[np.int32], sources: NDArray[np.int64]) -> Examples:
        """Examples with a separator before each row, for models that read forwards: after a row comes a separator."""
        owners = np.pad(documents, ((0, 0), (1, 0)))
        owners[:, 0] = owners[:, 1]
        padded = np.pad(ids, ((0, 0), (1, 0)), constant_values=self.tokenizer.separator)
        following = np.pad(ids, ((0, 0), (0, 1)), constant_values=self.tokenizer.separator)
        return Examples(
            Row(np.where(owners > 0, padded, self.tokenizer.pad), documents=owners),
            np.pad(sources, ((0, 0), (1, 0)), constant_values=-1),
            following,
        )

    def wrapped(self, ids: NDArray[np.int64], documents: NDArray[np.int32], sources: NDArray[np.int64]) -> Examples:
        """Examples with [CLS] at the start of each row, and [SEP] after its last token."""
        rows = np.arange(len(ids))
        last = (documents > 0).sum(1)
        pad = self.tokenizer.pad
        padded = np.pad(np.where(documents > 0, ids, pad), ((0, 0), (1, 1)), constant_values=pad)
        owners = np.pad(documents, ((0, 0), (1, 1)))
        padded[:, 0], owners[:, 0] = self.tokenizer.start, owners[:, 1]
        padded[rows, last + 1], owners[rows, last + 1] = self.tokenizer.separator, owners[rows, last]
        return Examples(Row(padded, documents=owners), np.pad(sources, ((0, 0), (1, 1)), constant_values=-1))


def separated_texts(split: Split, sentences: float) -> NDArray[np.int64]:
    """(D + 1,) where documents begin, and the sentences of a share of them, drawn once for each; and the text's end."""
    documents = np.asarray(split.documents)
    if sentences == 0 or len(documents) == 1:
        return documents
    every = np.asarray(split.sentences)
    if sentences == 1:
        return every
    numbers = np.arange(len(documents) - 1)
    chosen = Draws(0, np.zeros_like(numbers), numbers).uniform("separated sentences", 1)[:, 0] < sentences
    begins = every[:-1]
    owners = np.searchsorted(documents, begins, side="right") - 1
    return np.append(begins[chosen[owners] | (begins == documents[owners])], documents[-1])
