"""One split of a corpus, memory-mapped: train, validation or test."""

import mmap
from pathlib import Path
from typing import cast

import numpy as np

from bakeoff.corpus.manifest import SplitCounts
from bakeoff.display.wording import share_text
from bakeoff.errors import UserError
from bakeoff.tokenizer.hidden import MOST_HIDDEN, HiddenText

INDEXES = "indexes"


class Split:
    """One split of a corpus, memory-mapped.

    In a corpus of pairs a pair is a document of two sentences, its source and its target.

    Attributes:
        tokens: (N,) uint16 or uint32 ids.
        sentences: (S + 1,) int64, the token at which each sentence starts; the last entry is N.
        documents: (D + 1,) int64, the token at which each document starts, a start of a sentence, too; the last is N.
        originals: (D,) int64, ascending from 0 in each split; stretches of one document of the input share a number.
        bytes: UTF-8 bytes of the text, spaces between sentences included.
        hidden: counts of unknown tokens and hidden characters, of pairs those of the targets; None: not counted, in an
            older corpus that has unknown tokens.
    """

    index_path: Path | None = None
    """The common prefix of the paths of the files that `row_index` keeps; None: it keeps none."""

    def __init__(self, folder: Path, name: str, counts: SplitCounts, dtype: str) -> None:
        """Map the files of one split; `folder` holds `name.tokens` and its companions."""
        self.index_path = folder / INDEXES / name
        self.tokens = _map(folder / f"{name}.tokens", dtype, counts.tokens, scattered=True)
        self.sentences = _map(folder / f"{name}.sentences", "int64", counts.sentences + 1)
        self.documents = _map(folder / f"{name}.documents", "int64", counts.documents + 1)
        self.originals = _map(folder / f"{name}.originals", "int64", counts.documents)
        self._words = _map(folder / f"{name}.words", "uint8", (counts.tokens + 7) // 8, scattered=True)
        self.counts = counts
        self.bytes = counts.bytes
        self.hidden: HiddenText | None = counts.hidden if counts.target_hidden is None else counts.target_hidden

    def starts_word(self, indices: np.ndarray) -> np.ndarray:
        """Whether the tokens at these positions start a word.

        Args:
            indices: int64 positions in `tokens`, any shape.

        Returns:
            bool, the shape of `indices`.
        """
        return cast(np.ndarray, (self._words[indices >> 3] >> (indices & 7).astype(np.uint8)) & 1 == 1)

    @property
    def pairs(self) -> bool:
        """Whether documents are pairs of a source and a target."""
        return self.counts.target_tokens is not None

    @property
    def tokens_per_byte(self) -> float:
        """Tokens to predict for each byte of text or targets; the end of each document or target is a token, too."""
        return self.targets_per_byte(len(self.documents) - 1)

    def targets_per_byte(self, separators: int) -> float:
        """Tokens to predict for each byte of text or targets, so many ends of texts or targets included.

        Bytes of hidden characters do not count, but the unknown tokens that replace them do.
        """
        tokens, size = len(self.tokens), self.bytes
        if self.counts.target_tokens is not None and self.counts.target_bytes is not None:
            tokens, size = self.counts.target_tokens, self.counts.target_bytes
        hidden = 0 if self.hidden is None else self.hidden.hidden_bytes
        return (tokens + separators) / max(size - hidden, 1)

    @property
    def hidden_share(self) -> float | None:
        """The share of the characters that is hidden; None: not counted."""
        return None if self.hidden is None else self.hidden.share

    @property
    def all_unknown(self) -> bool:
        """Whether the text has unknown tokens alone."""
        return self.hidden is not None and self.hidden.all_unknown

    @property
    def no_bits_per_byte(self) -> str | None:
        """The reason why bits per byte of this text are no number; None: they are one."""
        return too_much_hidden(self.hidden_share)

    def unigram_entropy(self) -> float:
        """Loss in nats a token of a unigram model of the training text, as `prepare` computed it."""
        return self.counts.unigram_entropy


def too_much_hidden(share: float | None) -> str | None:
    """The reason why bits per byte are no number where a share of a text's characters is hidden; None: they are one."""
    if share is None:
        return "unknown tokens hide characters that were not counted when the corpus was prepared; prepare it again"
    if share <= MOST_HIDDEN:
        return None
    return f"{share_text(share)} of the characters are hidden by unknown tokens, more than {share_text(MOST_HIDDEN)}"


def _map(file: Path, dtype: str, length: int, scattered: bool = False) -> np.ndarray:
    """A file as a read-only array of a known length.

    Raises:
        UserError: the file is missing, or has another size.
    """
    expected = length * np.dtype(dtype).itemsize
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        raise UserError(f"{file}: this split of the corpus is missing; prepare the corpus again") from None
    if size != expected:
        raise UserError(f"{file}: holds {size} bytes instead of {expected}; prepare the corpus again")
    return map_array(file, dtype, scattered)


def map_array(file: Path, dtype: str, scattered: bool) -> np.ndarray:
    """A file as a read-only array in mapped memory.

    Args:
        file: the file with the array's bytes.
        dtype: the type of the array.
        scattered: short runs of the array are read in random order. Without that advice the system reads a hundred
            kilobytes and more around each run: the first batch of a corpus of ten billion tokens then takes seconds.
    """
    if file.stat().st_size == 0:
        return np.zeros(0, dtype)
    with file.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mmap, "MADV_RANDOM"):  # not on Windows
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype)
