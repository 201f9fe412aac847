"""Blocks: the documents one after the other, cut into rows of equal length."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.config import Config
from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.objectives.example import Examples


class BlocksConfig(Config):
    """Contiguous text in which every document begins with the separator; no token is lost."""

    format: Literal["blocks"] = "blocks"
    """The format's name."""
    length: int = Field(gt=2)
    """T, tokens in a row; for objectives that are not causal [CLS] and [SEP] at its ends are two of them."""
    isolate: bool = True
    """Documents that share a row do not see each other."""

    def build(self, split: Split, tokenizer: Tokenizer, running: bool) -> "Blocks":
        """The format over a split.

        Args:
            split: the text.
            tokenizer: its tokenizer.
            running: rows are the bare text, each row continuing the last one (for causal objectives).
        """
        return Blocks(self, split, tokenizer, running)


class Blocks:
    """The text as one stream: document d takes places documents[d] + d to documents[d + 1] + d, a separator first."""

    def __init__(self, config: BlocksConfig, split: Split, tokenizer: Tokenizer, running: bool) -> None:
        self.split = split
        self.tokenizer = tokenizer
        self.isolate = config.isolate
        self.length = config.length
        self.running = running
        self.step = config.length if running else config.length - 2
        self.starts = np.asarray(split.documents[:-1]) + np.arange(
            len(split.documents) - 1
        )  # of documents, in the stream
        self.total = len(split.tokens) + len(self.starts)
        self.size = -(-self.total // self.step)
        self.tokens_per_example = self.total / self.size + (self.length - self.step)

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """Rows of the stream; nothing in them is random."""
        places = indices[:, None] * self.step + np.arange(self.step + 1)  # (N, step + 1)
        owners = np.searchsorted(self.starts, places, side="right") - 1
        sources = places - owners - 1
        sources[(places == self.starts[owners]) | (places >= self.total)] = -1
        ids = np.where(sources >= 0, self.split.tokens[np.maximum(sources, 0)], self.tokenizer.separator).astype(
            np.int64
        )
        documents = (owners - owners[:, :1] + 1).astype(np.int32) if self.isolate else np.ones(ids.shape, np.int32)
        documents[places >= self.total] = 0
        if self.running:
            return Examples(
                ids=np.where(documents[:, :-1] > 0, ids[:, :-1], self.tokenizer.pad),
                documents=documents[:, :-1],
                sources=sources[:, :-1],
                following=ids[:, 1:],
            )
        return self._wrapped(ids[:, :-1], documents[:, :-1], sources[:, :-1])

    def _wrapped(self, ids: NDArray[np.int64], documents: NDArray[np.int32], sources: NDArray[np.int64]) -> Examples:
        """[CLS] at the start of each row, [SEP] behind its last token."""
        rows = np.arange(len(ids))
        last = (documents > 0).sum(1)
        padded = np.pad(
            np.where(documents > 0, ids, self.tokenizer.pad),
            ((0, 0), (1, 1)),
            constant_values=self.tokenizer.pad,
        )
        owners = np.pad(documents, ((0, 0), (1, 1)))
        padded[:, 0], owners[:, 0] = self.tokenizer.start, owners[:, 1]
        padded[rows, last + 1], owners[rows, last + 1] = self.tokenizer.separator, owners[rows, last]
        return Examples(padded, owners, np.pad(sources, ((0, 0), (1, 1)), constant_values=-1))
