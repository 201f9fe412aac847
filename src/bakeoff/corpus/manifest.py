"""The manifest of a corpus, corpus.json: counts, hashes and sources."""

from typing import Annotated, Any, Literal

from pydantic import Field

from bakeoff.config import Config
from bakeoff.tokenizer.hidden import HiddenText


class SplitCounts(Config):
    """Counts of one split of the corpus."""

    tokens: int = Field(ge=0, lt=1 << 60)
    """Number of token ids (N)."""
    sentences: int = Field(ge=0, lt=1 << 60)
    """Number of sentences (S)."""
    documents: int = Field(ge=0, lt=1 << 60)
    """Number of documents (D); if runs within documents are held out, each stretch between two cuts counts as one."""
    words: int = Field(ge=0, lt=1 << 60)
    """Number of words, separated by white space; the end of a line counts as a word if it is a token. (Older corpora:
    number of tokens that start a word.)"""
    lines: int | None = None
    """Number of ends of lines; None: they are no tokens."""
    bytes: int = Field(ge=0)
    """UTF-8 bytes of the text."""
    unigram_entropy: float
    """Loss in nats a token of a unigram model with the token counts of the training text, one added to each count; for
    pairs, a token of the targets."""
    target_tokens: int | None = None
    """Number of token ids of the targets, in a corpus of pairs; None: the corpus is a text."""
    target_bytes: int | None = None
    """UTF-8 bytes of the targets, in a corpus of pairs."""
    hidden: HiddenText | None = None
    """Counts of unknown tokens, and of the characters that have no other token; None: not counted, in older corpora."""
    target_hidden: HiddenText | None = None
    """The same of the targets, in a corpus of pairs."""

    @property
    def spaced_words(self) -> int:
        """Number of words between white space, without the ends of lines that are tokens."""
        return self.words - (self.lines or 0)


class SourceFile(Config):
    """A file that the corpus was made from."""

    path: str
    """Path of the file, or name of the Hub's data set with the file's number."""
    bytes: int
    """Size in bytes on disk, compressed if the file is; 0 for a file of the Hub whose size is not known."""
    revision: str | None = None
    """Commit of a data set of the Hub, see `HubFile`; None: another file."""
    split: str | None = None
    """The split that the file was given for, `validation` or `test`; None: it belongs to the text that is split."""


class Manifest(Config):
    """Content and origin of a corpus; `corpus.json` in its folder."""

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
    """The tokenizer's training sample: bytes asked for, bytes and paragraphs taken, seed; empty if none was trained."""
    originals: int
    """Documents of the input; the splits together have more if runs within documents are held out."""
    validation_unit: str
    """Unit of held-out text: `documents`; `runs of paragraphs` if there are too few documents; or `runs of sentences`
    if paragraphs or documents are too long for the share."""
    skips: dict[str, int]
    """Numbers of files, documents or pairs that were left out, by reason."""
    versions: dict[str, str]
    """Versions of Bakeoff, Python and the libraries that made the corpus."""
