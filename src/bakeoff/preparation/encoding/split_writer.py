"""Writing of one split of a corpus, which another process can continue if this one is killed."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bakeoff.config import Config
from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.store import KINDS
from bakeoff.tokenizer.hidden import HiddenText

_BLOCK = 1 << 20  # bytes
_NOTHING = HiddenText()


class GrowingFile:
    """A growing file and the hash of its content."""

    def __init__(self, file: Path, size: int = 0) -> None:
        """Create the file, or continue it after its first `size` bytes; later bytes are dropped."""
        self.size = size
        self._hash = hashlib.sha256()
        self._stream: BinaryIO = file.open("r+b" if size else "wb")
        rest = size
        while rest:
            data = self._stream.read(min(rest, _BLOCK))
            self._hash.update(data)
            rest -= len(data)
        self._stream.truncate(size)

    def append(self, values: np.ndarray) -> None:
        """Write the bytes of an array."""
        data = np.ascontiguousarray(values).data
        self._stream.write(data)
        self._hash.update(data)
        self.size += data.nbytes

    def save(self) -> None:
        """Wait until all of the file is on the disk."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def finish(self) -> str:
        """Save and close the file; returns its hash."""
        self.save()
        self._stream.close()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Close the file, saved or not."""
        self._stream.close()


class SplitState(Config):
    """Progress of the writing of one split, from which another process can continue."""

    sizes: dict[str, int]
    """Size of each file of the split in bytes, by kind."""
    tokens: int
    """Number of tokens appended."""
    documents: int
    """Number of documents appended."""
    sentences: int
    """Number of sentences appended."""
    words: int
    """Number of words of the text."""
    bytes: int
    """UTF-8 bytes of the text."""
    hidden: HiddenText
    """Counts of unknown tokens, and of the characters that have no other token."""
    original: int
    """Number of the last document of the input; -1 before the first."""
    bits: list[bool]
    """Word starts of the last tokens, fewer than fill a byte."""
    opens_next: bool
    """Whether a document opens before the next sentence."""
    next_is_new: bool
    """Whether the document that opens next is a new one of the input, not another stretch of the last one."""


class SplitWriter:
    """Writer of the files of one split of a corpus.

    Attributes:
        tokens, documents: numbers of tokens and of documents appended.
    """

    def __init__(
        self, folder: Path, name: str, vocabulary: int, state: SplitState | None = None, *, pairs: bool = False
    ) -> None:
        """Create the files of split `name` in `folder`, or continue from a saved state.

        Args:
            folder: the folder of the files.
            name: name of the split.
            vocabulary: number of token ids.
            state: saved state of the writer; None: begin. Writers of pairs have no states.
            pairs: whether every document is a source and a target.
        """
        self._pairs = pairs
        sizes = dict.fromkeys(KINDS, 0) if state is None else state.sizes
        self._dtype = id_type(vocabulary)
        self._files = {kind: GrowingFile(folder / f"{name}.{kind}", sizes[kind]) for kind in KINDS}
        self._name = name
        self.frequencies = np.zeros(vocabulary, dtype=np.int64)
        self.tokens = self.documents = self._sentences = self._words = self._bytes = 0
        self._target_bytes = 0
        self._hidden = self._target_hidden = HiddenText()
        self._bits = np.zeros(0, dtype=bool)  # word starts that do not fill a byte yet
        self._opens_next = False
        self._next_is_new = False
        self._original = -1
        if state is not None:
            self._resume(folder / f"{name}.tokens", state)

    def _resume(self, tokens: Path, state: SplitState) -> None:
        self.tokens, self.documents = state.tokens, state.documents
        self._sentences, self._words, self._bytes = state.sentences, state.words, state.bytes
        self._hidden = state.hidden
        self._bits = np.array(state.bits, dtype=bool)
        self._opens_next, self._next_is_new = state.opens_next, state.next_is_new
        self._original = state.original
        with tokens.open("rb") as stream:
            while len(ids := np.fromfile(stream, self._dtype, _BLOCK)):
                self.frequencies += np.bincount(ids, minlength=len(self.frequencies))

    def save(self) -> SplitState:
        """Wait until all files are on the disk; returns the state from which another writer can continue."""
        for file in self._files.values():
            file.save()
        return SplitState(
            sizes={kind: file.size for kind, file in self._files.items()},
            tokens=self.tokens,
            documents=self.documents,
            sentences=self._sentences,
            words=self._words,
            bytes=self._bytes,
            hidden=self._hidden,
            original=self._original,
            bits=self._bits.tolist(),
            opens_next=self._opens_next,
            next_is_new=self._next_is_new,
        )

    def append(
        self,
        ids: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        documents: np.ndarray,
        size: int,
        words: int,
        stretches: np.ndarray | None = None,
        hidden: HiddenText = _NOTHING,
        target_size: int = 0,
        target_hidden: HiddenText = _NOTHING,
    ) -> None:
        """Append sentences.

        Args:
            ids: (n,) token ids.
            starts: (n,) bool, whether each token starts a word.
            lengths: (s,) tokens of each sentence; their sum is n, none is 0.
            documents: (d,) ascending indices of the sentences with which documents open; s stands for the first
                sentence of the next call. A document without sentences leaves no trace.
            size: UTF-8 bytes of the text.
            words: words of the text, separated by white space; the end of a line counts as a word if it is a token.
            stretches: (d,) bool, whether each document is another stretch of the input's document that the one before
                it belongs to; None: none is.
            hidden: counts of unknown tokens, and of the characters that have no other token.
            target_size: UTF-8 bytes of the targets of pairs.
            target_hidden: `hidden` of the targets of pairs.
        """
        self._bytes += size
        self._words += words
        self._target_bytes += target_size
        self._hidden += hidden
        self._target_hidden += target_hidden
        new = np.ones(len(documents), dtype=bool) if stretches is None else ~stretches
        if len(lengths) and self._opens_next:
            if not (len(documents) and documents[0] == 0):
                documents, new = np.insert(documents, 0, 0), np.insert(new, 0, False)
            new[0] |= self._next_is_new
            self._opens_next = self._next_is_new = False
        if len(documents) and documents[-1] == len(lengths):
            self._opens_next, self._next_is_new = True, self._next_is_new or bool(new[-1])
            documents, new = documents[:-1], new[:-1]
        if len(ids) == 0:
            return
        offsets = self.tokens + np.cumsum(lengths, dtype=np.int64) - lengths
        self._files["tokens"].append(ids.astype(self._dtype, copy=False))
        self._files["sentences"].append(offsets)
        self._files["documents"].append(offsets[documents])
        self._files["originals"].append(self._original + np.cumsum(new, dtype=np.int64))
        predicted = ids[np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)] if self._pairs else ids
        self.frequencies += np.bincount(predicted, minlength=len(self.frequencies))
        bits = np.concatenate([self._bits, starts])
        whole = len(bits) // 8 * 8
        self._files["words"].append(np.packbits(bits[:whole], bitorder="little"))
        self._bits = bits[whole:]
        self._original += int(np.count_nonzero(new))
        self.documents += len(documents)
        self.tokens += len(ids)
        self._sentences += len(lengths)

    def finish(
        self, train_frequencies: np.ndarray, end_of_line: int | None = None
    ) -> tuple[SplitCounts, dict[str, str]]:
        """Close the files; returns the counts and the hash of each file.

        Args:
            train_frequencies: (V,) counts of each token in the training text; for pairs, in the targets.
            end_of_line: id of the token that ends a line, if there is one.
        """
        end = np.array([self.tokens], dtype=np.int64)
        self._files["sentences"].append(end)
        self._files["documents"].append(end)
        self._files["words"].append(np.packbits(self._bits, bitorder="little"))
        hashes = {f"{self._name}.{kind}": file.finish() for kind, file in self._files.items()}
        # A model can only know the frequencies of the training text; one added to each makes no token impossible.
        known = (train_frequencies + 1) / (train_frequencies.sum() + len(train_frequencies))
        counts = SplitCounts(
            tokens=self.tokens,
            sentences=self._sentences,
            documents=self.documents,
            words=self._words,
            lines=None if end_of_line is None else int(self.frequencies[end_of_line]),
            bytes=self._bytes,
            unigram_entropy=float(-(self.frequencies * np.log(known)).sum() / max(self.frequencies.sum(), 1)),
            target_tokens=int(self.frequencies.sum()) if self._pairs else None,
            target_bytes=self._target_bytes if self._pairs else None,
            hidden=self._hidden,
            target_hidden=self._target_hidden if self._pairs else None,
        )
        return counts, hashes

    def close(self) -> None:
        """Close the files of an abandoned corpus."""
        for file in self._files.values():
            file.close()


def id_type(vocabulary: int) -> str:
    """Type of the token ids on disk: uint16, or uint32 for vocabularies above 65,536."""
    return "uint16" if vocabulary <= 1 << 16 else "uint32"
