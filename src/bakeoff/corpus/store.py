"""The store of a corpus: memory-mapped token ids, and where sentences, documents and words start."""

import hashlib
import mmap
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.corpus.bounds import check_bounds
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.tokenizer.tokenizer import Tokenizer

FORMAT = 2
MANIFEST = "corpus.json"
TOKENIZER = "tokenizer.json"
SPLITS = ("train", "validation")
"""The parts that every corpus has."""
TEST = "test"
"""The part that one has to which files for it were given."""
INDEXES = "indexes"
KINDS = ("tokens", "sentences", "documents", "originals", "words")
"""The files of one part of a corpus."""


class SplitCounts(Config):
    """Numbers of one part of the corpus."""

    tokens: int = Field(ge=0, lt=1 << 60)
    """Token ids (N)."""
    sentences: int = Field(ge=0, lt=1 << 60)
    """Sentences (S)."""
    documents: int = Field(ge=0, lt=1 << 60)
    """Documents (D); where runs within documents are held out, each stretch between two cuts counts as one."""
    words: int = Field(ge=0, lt=1 << 60)
    """What white space separates; the end of a line, where it is a token, is one. (Older corpora: tokens that start a
    word.)"""
    lines: int | None = None
    """Ends of lines, where they are tokens of their own; None: they are not."""
    bytes: int = Field(ge=0)
    """UTF-8 bytes of the text."""
    unigram_entropy: float
    """Loss in nats a token of knowing only how frequent each token is in the training text (one added to each); of
    pairs, a token of the targets."""
    target_tokens: int | None = None
    """Token ids of the targets, in a corpus of pairs; None: the corpus is a text."""
    target_bytes: int | None = None
    """UTF-8 bytes of the targets, in a corpus of pairs."""


class SourceFile(Config):
    """A file that the corpus was made from."""

    path: str
    """Path as it was found."""
    bytes: int
    """Size on disk, compressed where the file is; 0 where it is not known of a file of the Hub."""
    revision: str | None = None
    """Commit of a data set of the Hub."""
    split: str | None = None
    """The part that the file was given for, `validation` or `test`; None: the text, of which some may be held out."""


class Manifest(Config):
    """What the corpus holds and where it comes from; `corpus.json` in its folder."""

    format: Literal[2]
    """Version of the layout on disk."""
    dtype: Literal["uint16", "uint32"]
    """Type of the token ids: uint16, or uint32 where the vocabulary exceeds 65,536."""
    vocabulary: int
    """Number of ids of the tokenizer (V)."""
    splits: dict[Annotated[str, Field(pattern=r"^(train|validation|test)$")], SplitCounts]
    """Counts of `train`, `validation` and, where there is one, `test`."""
    sha256: dict[Annotated[str, Field(pattern=r"^[a-z]+\.[a-z]+$")], str]
    """Hash of each file of the corpus, by its name."""
    sources: list[SourceFile]
    """Input files in the order in which they were read."""
    options: dict[str, Any]
    """Options of `prepare`, complete."""
    sentence_rule: str
    """Name and version of the rule that split sentences."""
    tokenizer_sample: dict[str, Any]
    """What the tokenizer was trained on: bytes asked for, bytes and paragraphs taken, seed; empty if it was given."""
    originals: int
    """Documents of the input; fewer than the splits have where runs within them are held out."""
    validation_unit: str
    """`documents`; or `runs of paragraphs` where there are too few of them, or `runs of sentences` where paragraphs or
    documents are too long for the share."""
    skips: dict[str, int]
    """What was left out, by reason."""
    versions: dict[str, str]
    """Versions of the libraries that made the corpus."""


class Split:
    """One part of a corpus, memory-mapped.

    In a corpus of pairs a pair is a document of two sentences, its source and its target.

    Attributes:
        tokens: (N,) uint16 or uint32 ids.
        sentences: (S + 1,) int64, the token at which each sentence starts; the last entry is N.
        documents: (D + 1,) int64, the token at which each document starts, always the start of a sentence too; last N.
        originals: (D,) int64, ascending from 0 in each part; stretches of one document of the input share a number.
        bytes: UTF-8 bytes of the text, spaces between sentences included.
    """

    index_path: Path | None = None
    """Where `row_index` keeps its files, all of whose names start so; None: nowhere."""

    def __init__(self, folder: Path, name: str, counts: SplitCounts, dtype: str) -> None:
        """Map the files of one part; `folder` holds `name.tokens` and its companions."""
        self.index_path = folder / INDEXES / name
        self.tokens = _map(folder / f"{name}.tokens", dtype, counts.tokens, scattered=True)
        self.sentences = _map(folder / f"{name}.sentences", "int64", counts.sentences + 1)
        self.documents = _map(folder / f"{name}.documents", "int64", counts.documents + 1)
        self.originals = _map(folder / f"{name}.originals", "int64", counts.documents)
        self._words = _map(folder / f"{name}.words", "uint8", (counts.tokens + 7) // 8, scattered=True)
        self.counts = counts
        self.bytes = counts.bytes

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
        """Documents are pairs of a source and a target."""
        return self.counts.target_tokens is not None

    @property
    def tokens_per_byte(self) -> float:
        """Tokens to predict for each byte of text: the mark between two documents is one too, and a target's end."""
        if self.counts.target_tokens is not None and self.counts.target_bytes is not None:
            return (self.counts.target_tokens + len(self.documents) - 1) / self.counts.target_bytes
        return (len(self.tokens) + len(self.documents) - 1) / self.bytes

    def unigram_entropy(self) -> float:
        """Loss of knowing only the frequencies of the training text, nats per token, as counted by `prepare`."""
        return self.counts.unigram_entropy


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
        """What it is."""
        tokens = ", ".join(f"{counts.tokens:,} tokens of {name}" for name, counts in self.manifest.splits.items())
        return f"Corpus.open({str(self.path)!r}): {tokens}, a vocabulary of {self.manifest.vocabulary:,}"

    @classmethod
    def open(cls, path: str | Path) -> "Corpus":
        """Open a corpus; only its small manifest is read. A part is compared with its hashes when it is asked for.

        Raises:
            UserError: no such folder, not a corpus, an unfinished one, another version, a damaged manifest, or a part
                of the wrong size.
        """
        path = Path(path)
        if not path.exists():
            raise UserError(f"{path}: no such corpus; make one with `bakeoff prepare TEXT --out {path}`")
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
        """What is trained on; see `split`."""
        return self.split("train")

    @property
    def validation(self) -> Split:
        """What is held out; see `split`."""
        return self.split("validation")

    def split(self, name: str) -> Split:
        """A part by its name: train, validation or test.

        Raises:
            UserError: the corpus has no such part.
            Damaged: a file of it is not what was written.
        """
        if name not in self._splits:
            raise UserError(f"{self.path}: has no part '{name}'; prepare the text again with --{name} FILES")
        if name not in self._verified:
            for kind in KINDS:
                self._verify(f"{name}.{kind}")
            check_bounds(self.path / name, self._splits[name], self.manifest.vocabulary)
            self._verified.add(name)
        return self._splits[name]

    def _verify(self, name: str) -> None:
        """Compare a file with its hash in the manifest."""
        if (expected := self.manifest.sha256.get(name)) is not None:
            checksums.compare(self.path / name, expected)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The corpus's tokenizer.

        Raises:
            UserError: it is damaged, or not that of these ids.
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
        parts = "".join(f"{name} {digest}\n" for name, digest in sorted(self.manifest.sha256.items()))
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    @property
    def train_tokens(self) -> int:
        """Tokens of the part to train on; of pairs those of both sides."""
        return len(self.train.tokens)

    @property
    def pairs(self) -> bool:
        """It holds pairs of a source and a target, for translation, and no text."""
        return self.manifest.splits["train"].target_tokens is not None

    def verify(self) -> None:
        """Read every part, whatever is remembered of it, and compare it with its hash.

        Raises:
            UserError: a file is missing or damaged; the message names it.
        """
        for name, expected in self.manifest.sha256.items():
            checksums.compare(self.path / name, expected, anew=True)

    def summary(self) -> dict[str, Any]:
        """What to print: counts of documents (or pairs) and tokens, skips, how sentences were split and shuffled."""
        splits = self.manifest.splits
        validation, test = splits["validation"], splits.get(TEST)
        targets = [split.target_tokens for split in splits.values() if split.target_tokens is not None]
        return {
            "path": str(self.path),
            "fingerprint": self.fingerprint,
            "documents": self.manifest.originals,
            "sentences": sum(split.sentences for split in splits.values()),
            "sentence_rule": self.manifest.sentence_rule,
            "shuffled_ngrams": self.manifest.options.get("shuffle_ngrams"),
            "tokens": sum(split.tokens for split in splits.values()),
            "target_tokens": sum(targets) if self.pairs else None,
            "held_out_documents": validation.documents,
            "held_out_tokens": validation.tokens,
            "held_out_unit": self.manifest.validation_unit,
            "test_documents": None if test is None else test.documents,
            "test_tokens": None if test is None else test.tokens,
            "bytes": sum(split.bytes for split in splits.values()),
            "vocabulary": self.manifest.vocabulary,
            "unigram_entropy": validation.unigram_entropy,
            "skips": dict(self.manifest.skips),
        }


def _map(file: Path, dtype: str, length: int, scattered: bool = False) -> np.ndarray:
    """A file as a read-only array of a known length; a file of another size is not mapped."""
    expected = length * np.dtype(dtype).itemsize
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        raise UserError(f"{file}: this part of the corpus is missing; prepare the corpus again") from None
    if size != expected:
        raise UserError(f"{file}: holds {size} bytes instead of {expected}; prepare the corpus again")
    return map_array(file, dtype, scattered)


def map_array(file: Path, dtype: str, scattered: bool) -> np.ndarray:
    """A file as a read-only array, of which only what is looked at is read.

    Args:
        file: the array's bytes.
        dtype: its type.
        scattered: short runs of it are looked at in random order. Without that advice the system reads a hundred
            kilobytes and more around each: the first batch of a corpus of ten billion tokens then takes seconds.
    """
    if file.stat().st_size == 0:
        return np.zeros(0, dtype)
    with file.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mmap, "MADV_RANDOM"):  # not on Windows
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype)
