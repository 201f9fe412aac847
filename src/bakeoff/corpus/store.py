"""The store of a corpus: memory-mapped token ids, and the starts of sentences, documents and words."""

import hashlib
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from bakeoff import checksums
from bakeoff.corpus.bounds import check_bounds
from bakeoff.corpus.manifest import Manifest
from bakeoff.corpus.split import Split
from bakeoff.errors import UserError, at_home, path_of
from bakeoff.json_files import read_json
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer

FORMAT = 2
MANIFEST = "corpus.json"
TOKENIZER = "tokenizer.json"
SPLITS = ("train", "validation")
"""The splits that every corpus has."""
TEST = "test"
"""The split of a corpus that was given test files; other corpora have none."""
KINDS = ("tokens", "sentences", "documents", "originals", "words")
"""Suffixes of the files of one split."""
_COUNTED = 1 << 22  # tokens that are counted at once


class Corpus:
    """A prepared corpus.

    Attributes:
        path: its folder.
        manifest: counts, hashes and provenance.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        """Use `Corpus.open`."""
        self.path = path
        self.manifest = manifest
        self._splits = {name: Split(path, name, counts, manifest.dtype) for name, counts in manifest.splits.items()}
        self._verified: set[str] = set()

    def __repr__(self) -> str:
        """The corpus in a line: its folder, the tokens of its splits, its vocabulary."""
        tokens = ", ".join(f"{counts.tokens:,} tokens of {name}" for name, counts in self.manifest.splits.items())
        return f"Corpus.open({str(self.path)!r}): {tokens}, a vocabulary of {self.manifest.vocabulary:,}"

    @classmethod
    def open(cls, path: str | Path) -> "Corpus":
        """Open a corpus; only its small manifest is read. A split is compared with its hashes on its first use.

        Raises:
            UserError: there is no such folder, it holds no corpus, an unfinished one or one of another version, the
                manifest is damaged, or a split has the wrong size.
        """
        path = at_home(path_of(path, "corpus"))
        if not path.exists():
            raise UserError(f"{path}: no such corpus; make one with `bakeoff prepare TEXT --out {quote(str(path))}`")
        if not (path / MANIFEST).is_file():
            raise UserError(f"{path}: not a finished corpus (it has no {MANIFEST}); make one with `bakeoff prepare`")
        values = read_json(path / MANIFEST)
        if (version := values.get("format")) != FORMAT:
            raise UserError(
                f"{path}: a corpus of format {version}, this version of bakeoff reads format {FORMAT}; prepare it again"
            )
        manifest = Manifest.parse(values, str(path / MANIFEST), strict=True)
        if missing := [name for name in SPLITS if name not in manifest.splits]:
            raise UserError(f"{path / MANIFEST}: splits: has no '{missing[0]}'; prepare the corpus again")
        return cls(path, manifest)

    @property
    def train(self) -> Split:
        """The split to train on; see `split`."""
        return self.split("train")

    @property
    def validation(self) -> Split:
        """The held-out split; see `split`."""
        return self.split("validation")

    def split(self, name: str) -> Split:
        """A split by its name: train, validation or test.

        Raises:
            UserError: the corpus has no such split.
            Damaged: a file of the split has changed since it was written.
        """
        if name not in self._splits:
            raise UserError(f"{self.path}: has no split '{name}'; prepare the text again with --{name} FILES")
        if name not in self._verified:
            for kind in KINDS:
                self._verify(f"{name}.{kind}")
            check_bounds(self.path / name, self._splits[name], self.manifest.vocabulary)
            if self._splits[name].hidden is None:
                self._splits[name].hidden = self._hidden_in_older(self._splits[name])
            self._verified.add(name)
        return self._splits[name]

    def _hidden_in_older(self, split: Split) -> HiddenText | None:
        """Counts of a split of a corpus from before they were kept; None: it has unknown tokens among others."""
        unknown = 0
        for first in range(0, len(split.tokens) if self.tokenizer.unknown is not None else 0, _COUNTED):
            unknown += int(np.count_nonzero(split.tokens[first : first + _COUNTED] == self.tokenizer.unknown))
        whole = unknown in (0, len(split.tokens))
        return HiddenText(tokens=len(split.tokens), unknown=unknown) if whole else None

    def _verify(self, name: str) -> None:
        """Compare a file with its hash in the manifest."""
        if (expected := self.manifest.sha256.get(name)) is not None:
            checksums.compare(self.path / name, expected)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The corpus's tokenizer.

        Raises:
            UserError: the tokenizer is damaged, or another one than that of the ids.
        """
        self._verify(TOKENIZER)
        tokenizer = Tokenizer.load(self.path / TOKENIZER)
        if tokenizer.size != self.manifest.vocabulary:
            raise UserError(
                f"{self.path / TOKENIZER}: has {tokenizer.size} tokens, the corpus {self.manifest.vocabulary}; "
                "prepare the corpus again"
            )
        return tokenizer

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell the content of this corpus from any other."""
        hashes = "".join(f"{name} {digest}\n" for name, digest in sorted(self.manifest.sha256.items()))
        return hashlib.sha256(hashes.encode()).hexdigest()[:16]

    @property
    def train_tokens(self) -> int:
        """Tokens of the split to train on; for pairs, of both sides."""
        return len(self.train.tokens)

    @property
    def words(self) -> int:
        """Words of all splits, see `SplitCounts.spaced_words`."""
        return sum(counts.spaced_words for counts in self.manifest.splits.values())

    @property
    def words_per_token(self) -> float:
        """Words that the split to train on has a token."""
        counts = self.manifest.splits["train"]
        return counts.spaced_words / max(1, counts.tokens)

    @property
    def pairs(self) -> bool:
        """Whether the corpus holds pairs of a source and a target, for translation, instead of text."""
        return self.manifest.splits["train"].target_tokens is not None

    def verify(self) -> None:
        """Read every file and compare it with its hash, even if it was compared before.

        Raises:
            UserError: a file is missing or damaged; the message names it.
        """
        for name, expected in self.manifest.sha256.items():
            checksums.compare(self.path / name, expected, anew=True)

    def summary(self) -> dict[str, Any]:
        """Facts to print, by name: counts of documents (or pairs) and tokens, skips, rule and shuffle of sentences."""
        splits = self.manifest.splits
        validation, test = splits["validation"], splits.get(TEST)
        counted = [split.hidden for split in splits.values() if split.hidden is not None]
        hidden = sum(counted, HiddenText()) if len(counted) == len(splits) else None
        targets = [split.target_tokens for split in splits.values() if split.target_tokens is not None]
        return {
            "path": str(self.path),
            "fingerprint": self.fingerprint,
            "documents": self.manifest.originals,
            "sentences": sum(split.sentences for split in splits.values()),
            "sentence_rule": self.manifest.sentence_rule,
            "shuffled_ngrams": self.manifest.options.get("shuffle_ngrams"),
            "words": self.words,
            "tokens": sum(split.tokens for split in splits.values()),
            "target_tokens": sum(targets) if self.pairs else None,
            "held_out_documents": validation.documents,
            "held_out_tokens": validation.tokens,
            "held_out_unit": self.manifest.validation_unit,
            "test_documents": None if test is None else test.documents,
            "test_tokens": None if test is None else test.tokens,
            "bytes": sum(split.bytes for split in splits.values()),
            "unknown_tokens": None if hidden is None else hidden.unknown,
            "characters": None if hidden is None else hidden.characters,
            "hidden_characters": None if hidden is None else hidden.hidden,
            "hidden": None if hidden is None else str(hidden),
            "vocabulary": self.manifest.vocabulary,
            "unigram_entropy": validation.unigram_entropy,
            "skips": dict(self.manifest.skips),
        }
