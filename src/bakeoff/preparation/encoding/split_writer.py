"""Writing `train` or `validation` of a corpus, so that another process can go on where one was killed."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bakeoff.config import Config
from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.store import KINDS

_BLOCK = 1 << 20  # bytes


class GrowingFile:
    """A file that grows, and its hash."""

    def __init__(self, file: Path, size: int = 0) -> None:
        """Create the file, or go on behind the first `size` bytes of it; what stands there after them is dropped."""
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
        """Have all of it on the disk before going on."""
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def finish(self) -> str:
        """Save and close it; returns its hash."""
        self.save()
        self._stream.close()
        return self._hash.hexdigest()

    def close(self) -> None:
        """Close it, saved or not."""
        self._stream.close()


class SplitState(Config):
    """How far one split of a corpus is written, so that another process can go on from there."""

    sizes: dict[str, int]
    """Bytes of each of its files."""
    tokens: int
    """Tokens appended."""
    documents: int
    """Documents appended."""
    sentences: int
    """Sentences appended."""
    words: int
    """Words of the text."""
    bytes: int
    """UTF-8 bytes of the text."""
    original: int
    """Number of the last document of the input; -1 before the first."""
    bits: list[bool]
    """Word starts of the last tokens, which do not fill a byte yet."""
    opens_next: bool
    """Whether a document opens before the next sentence."""
    next_is_new: bool
    """Whether that one is a new document of the input, not another stretch of the last."""


class SplitWriter:
    """Appends to the files of one split of the corpus.

    Attributes:
        tokens, documents: how many have been appended.
    """

    def __init__(
        self, folder: Path, name: str, vocabulary: int, state: SplitState | None = None, *, pairs: bool = False
    ) -> None:
        """Create the files of split `name` in `folder`, or go on from a state in which they were saved.

        Args:
            folder: where the files are.
            name: the split.
            vocabulary: number of token ids.
            state: where to go on; not of pairs.
            pairs: every document is a source and a target.
        """
        self._pairs = pairs
        sizes = dict.fromkeys(KINDS, 0) if state is None else state.sizes
        self._dtype = id_type(vocabulary)
        self._files = {kind: GrowingFile(folder / f"{name}.{kind}", sizes[kind]) for kind in KINDS}
        self._name = name
        self.frequencies = np.zeros(vocabulary, dtype=np.int64)
        self.tokens = self.documents = self._sentences = self._words = self._bytes = 0
        self._target_bytes = 0
        self._bits = np.zeros(0, dtype=bool)  # word starts that do not fill a byte yet
        self._opens_next = False
        self._next_is_new = False
        self._original = -1
        if state is not None:
            self._resume(folder / f"{name}.tokens", state)

    def _resume(self, tokens: Path, state: SplitState) -> None:
        self.tokens, self.documents = state.tokens, state.documents
        self._sentences, self._words, self._bytes = state.sentences, state.words, state.bytes
        self._bits = np.array(state.bits, dtype=bool)
        self._opens_next, self._next_is_new = state.opens_next, state.next_is_new
        self._original = state.original
        with tokens.open("rb") as stream:
            while len(ids := np.fromfile(stream, self._dtype, _BLOCK)):
                self.frequencies += np.bincount(ids, minlength=len(self.frequencies))

    def save(self) -> SplitState:
        """Have all that was appended on the disk; returns the state from which another writer can go on."""
        for file in self._files.values():
            file.save()
        return SplitState(
            sizes={kind: file.size for kind, file in self._files.items()},
            tokens=self.tokens,
            documents=self.documents,
            sentences=self._sentences,
            words=self._words,
            bytes=self._bytes,
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
        target_size: int = 0,
    ) -> None:
        """Append sentences.

        Args:
            ids: (n,) token ids.
            starts: (n,) bool, whether each token starts a word.
            lengths: (s,) tokens of each sentence; their sum is n, none is 0.
            documents: (d,) increasing sentences of these before which a document opens; s stands for the first
                sentence of the next call. A document without sentences leaves no trace.
            size: UTF-8 bytes of the text.
            words: words of the text, which white space separates; an end of a line is one where it is a token.
            stretches: (d,) bool, whether each of these documents is another stretch of the original that the one
                before it belongs to; left out, none is.
            target_size: of pairs, UTF-8 bytes of the targets.
        """
        self._bytes += size
        self._words += words
        self._target_bytes += target_size
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
            train_frequencies: (V,) how often each token stands in the training text, of pairs in the targets.
            end_of_line: id of the token that ends a line, if there is one.
        """
        end = np.array([self.tokens], dtype=np.int64)
        self._files["sentences"].append(end)
        self._files["documents"].append(end)
        self._files["words"].append(np.packbits(self._bits, bitorder="little"))
        hashes = {f"{self._name}.{kind}": file.finish() for kind, file in self._files.items()}
        # Frequencies as a model can know them: those of the training text, one added, so that none is impossible.
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
        )
        return counts, hashes

    def close(self) -> None:
        """Close the files of an abandoned corpus."""
        for file in self._files.values():
            file.close()


def id_type(vocabulary: int) -> str:
    """Type of the token ids on disk."""
    return "uint16" if vocabulary <= 1 << 16 else "uint32"
