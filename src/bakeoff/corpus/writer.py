"""Writing a corpus: files grow in a folder beside the final one, which appears only when it is complete."""

import hashlib
import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from bakeoff.corpus.store import FORMAT, MANIFEST, SPLITS, TOKENIZER, Corpus, Manifest, SplitCounts
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.durable import fresh, sync
from bakeoff.errors import UserError


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse an output folder that would have to be replaced.

    Raises:
        UserError: `out` exists and is not empty, and `overwrite` is off or it is not a corpus.
    """
    if not os.path.lexists(out):
        return
    if not out.is_dir() or out.is_symlink():
        raise UserError(f"{out}: exists and is not a folder; choose another --out")
    if not any(out.iterdir()):
        return
    if not (out / MANIFEST).is_file():
        raise UserError(f"{out}: exists and is not a corpus; choose another --out")
    if not overwrite:
        raise UserError(f"{out}: a corpus exists here already; add --overwrite to replace it, or choose another --out")


class _Part:
    """A file that grows, and its hash."""

    def __init__(self, file: Path) -> None:
        self._stream: BinaryIO = file.open("wb")
        self._hash = hashlib.sha256()

    def append(self, values: np.ndarray) -> None:
        data = np.ascontiguousarray(values).data
        self._stream.write(data)
        self._hash.update(data)

    def finish(self) -> str:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._hash.hexdigest()

    def close(self) -> None:
        self._stream.close()


KINDS = ("tokens", "sentences", "documents", "originals", "words")
"""The files of one part of a corpus."""


class SplitWriter:
    """Appends to the files of one part of the corpus.

    Attributes:
        tokens, documents: how many have been appended.
    """

    def __init__(self, folder: Path, name: str, vocabulary: int, pairs: bool = False) -> None:
        """Create the files of part `name` in `folder`; `pairs`: every document is a source and a target."""
        self._pairs = pairs
        self._dtype = id_type(vocabulary)
        self._parts = {kind: _Part(folder / f"{name}.{kind}") for kind in KINDS}
        self._name = name
        self.frequencies = np.zeros(vocabulary, dtype=np.int64)
        self.tokens = self.documents = self._sentences = self._words = self._bytes = 0
        self._target_bytes = 0
        self._bits = np.zeros(0, dtype=bool)  # word starts that do not fill a byte yet
        self._opens_next = False
        self._next_is_new = False
        self._original = -1

    def append(
        self,
        ids: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        documents: np.ndarray,
        size: int,
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
            stretches: (d,) bool, whether each of these documents is another stretch of the original that the one
                before it belongs to; left out, none is.
            target_size: of pairs, UTF-8 bytes of the targets.
        """
        self._bytes += size
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
        self._parts["tokens"].append(ids.astype(self._dtype, copy=False))
        self._parts["sentences"].append(offsets)
        self._parts["documents"].append(offsets[documents])
        self._parts["originals"].append(self._original + np.cumsum(new, dtype=np.int64))
        predicted = ids[np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)] if self._pairs else ids
        self.frequencies += np.bincount(predicted, minlength=len(self.frequencies))
        bits = np.concatenate([self._bits, starts])
        whole = len(bits) // 8 * 8
        self._parts["words"].append(np.packbits(bits[:whole], bitorder="little"))
        self._bits = bits[whole:]
        self._original += int(np.count_nonzero(new))
        self.documents += len(documents)
        self.tokens += len(ids)
        self._sentences += len(lengths)
        self._words += int(np.count_nonzero(starts))

    def finish(self, train_frequencies: np.ndarray) -> tuple[SplitCounts, dict[str, str]]:
        """Close the files; returns the counts and the hash of each file.

        Args:
            train_frequencies: (V,) how often each token stands in the training text, of pairs in the targets.
        """
        end = np.array([self.tokens], dtype=np.int64)
        self._parts["sentences"].append(end)
        self._parts["documents"].append(end)
        self._parts["words"].append(np.packbits(self._bits, bitorder="little"))
        hashes = {f"{self._name}.{kind}": part.finish() for kind, part in self._parts.items()}
        # Frequencies as a model can know them: those of the training text, one added, so that none is impossible.
        known = (train_frequencies + 1) / (train_frequencies.sum() + len(train_frequencies))
        counts = SplitCounts(
            tokens=self.tokens,
            sentences=self._sentences,
            documents=self.documents,
            words=self._words,
            bytes=self._bytes,
            unigram_entropy=float(-(self.frequencies * np.log(known)).sum() / max(self.frequencies.sum(), 1)),
            target_tokens=int(self.frequencies.sum()) if self._pairs else None,
            target_bytes=self._target_bytes if self._pairs else None,
        )
        return counts, hashes

    def close(self) -> None:
        """Close the files of an abandoned corpus."""
        for part in self._parts.values():
            part.close()


class CorpusWriter:
    """Context manager that writes a corpus; leaving it without `finish` removes everything that was written.

    Attributes:
        splits: the writers of `train` and `validation`.
    """

    def __init__(self, out: str | Path, tokenizer: Tokenizer, overwrite: bool = False, pairs: bool = False) -> None:
        """Prepare to write to `out`; `pairs`: every document is a source and a target.

        Raises:
            UserError: `out` would have to be replaced (see `check_target`), or cannot be created.
        """
        self._out = Path(os.path.abspath(out))
        self._overwrite = overwrite
        self._tokenizer, self._pairs = tokenizer, pairs
        self._folder = self._out.with_name(f".{self._out.name}.unfinished")
        self._open = False
        self._held = ExitStack()
        check_target(self._out, overwrite)

    def __enter__(self) -> Self:
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(fresh(self._folder, self._out))
        except OSError as error:
            raise UserError(f"{self._out}: cannot be created ({error.strerror})") from None
        self._open = True
        self.splits = {name: SplitWriter(self._folder, name, self._tokenizer.size, self._pairs) for name in SPLITS}
        return self

    def finish(self, provenance: dict[str, Any]) -> Corpus:
        """Complete the corpus and put it in its place.

        Args:
            provenance: the fields of `Manifest` that the writer does not know.

        Raises:
            UserError: one of the parts is empty.
        """
        counts: dict[str, SplitCounts] = {}
        hashes: dict[str, str] = {}
        for name, split in self.splits.items():
            counts[name], digests = split.finish(self.splits["train"].frequencies)
            hashes |= digests
        for name in SPLITS:
            if counts[name].tokens == 0:
                kind = "to train on" if name == "train" else "to hold out"
                raise UserError(
                    f"the text is too small: nothing is left {kind}; give more text or another --validation"
                )
        tokenizer = _Part(self._folder / TOKENIZER)
        tokenizer.append(np.frombuffer(self._tokenizer.to_string().encode(), dtype=np.uint8))
        hashes[TOKENIZER] = tokenizer.finish()
        manifest = Manifest(
            format=FORMAT,
            dtype=id_type(self._tokenizer.size),
            vocabulary=self._tokenizer.size,
            splits=counts,
            sha256=hashes,
            **provenance,
        )
        # The manifest makes the folder a corpus, so it is written last.
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
        part = _Part(self._folder / MANIFEST)
        part.append(np.frombuffer(text.encode(), dtype=np.uint8))
        part.finish()
        sync(self._folder)
        check_target(self._out, self._overwrite)
        replaced = self._out.with_name(f".{self._out.name}.replaced")
        if self._out.exists():
            self._out.rename(replaced)
        self._folder.rename(self._out)
        shutil.rmtree(replaced, ignore_errors=True)
        self._open = False
        sync(self._out.parent)
        return Corpus.open(self._out)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            for split in self.splits.values():
                split.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        self._held.close()


def id_type(vocabulary: int) -> str:
    """Type of the token ids on disk."""
    return "uint16" if vocabulary <= 1 << 16 else "uint32"
