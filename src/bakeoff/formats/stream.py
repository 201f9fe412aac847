"""The text as one stream: document d takes positions documents[d] + d to documents[d + 1] + d, a separator first.

Without separators, document d takes positions documents[d] to documents[d + 1] - 1.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
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
    """

    def __init__(self, split: Split, tokenizer: Tokenizer, isolate: bool, marked: bool = True) -> None:
        self.split, self.tokenizer, self.isolate = split, tokenizer, isolate
        count = len(split.documents) - 1
        self.marks = int(marked)  # separators before each document
        self.starts = np.asarray(split.documents[:-1]) + self.marks * np.arange(count)  # of documents, in the stream
        self.total = len(split.tokens) + self.marks * count

    def positions(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions in the stream of these tokens of the text."""
        return tokens + self.marks * np.searchsorted(np.asarray(self.split.documents), tokens, side="right")

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
        sources = positions - self.marks * (owners + 1)
        sources[((self.marks > 0) & (positions == self.starts[owners])) | (positions >= ends)] = -1
        ids = np.where(sources >= 0, self.split.tokens[np.maximum(sources, 0)], self.tokenizer.separator)
        documents = (owners - owners[:, :1] + 1) if self.isolate else np.ones(ids.shape)
        return ids.astype(np.int64), np.where(positions >= ends, 0, documents).astype(np.int32), sources

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
