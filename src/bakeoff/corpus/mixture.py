"""Several corpora as one text, each with its share of a training's rows."""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tokenizer.tokenizer import Tokenizer

PERIOD = 10_000
"""Rows among which each corpus has its exact share, in a random order."""

_PART = re.compile(r"(?P<path>.+):(?P<weight>[0-9.]+(?:e-?[0-9]+)?)")


class Mixture:
    """Corpora that were prepared with one tokenizer, read side by side.

    Attributes:
        parts: the corpora.
        shares: the share of the rows of each; together 1.
        path: what the user calls it.
    """

    def __init__(self, parts: Sequence[Corpus], weights: Sequence[float], name: str) -> None:
        """Mix corpora with weights.

        Raises:
            UserError: a weight is no positive number, or too small beside the others; or the corpora differ in kind or
                tokenizer.
        """
        total = sum(weights)
        if not min(weights) > 0:
            raise UserError(f"{name}: a weight of {min(weights):g}; give each corpus a weight above 0")
        for part, weight in zip(parts, weights, strict=True):
            if round(weight / total * PERIOD) < 1:
                raise UserError(
                    f"{part.path}: a weight of {weight:g} of {total:g} in all is less than a row in {PERIOD:,}; "
                    "give more, or leave the corpus out"
                )
            if part.tokenizer.to_string() != parts[0].tokenizer.to_string():
                raise UserError(
                    f"{part.path}: prepared with another tokenizer than {parts[0].path}; prepare it with "
                    f"`--tokenizer {parts[0].path / 'tokenizer.json'}`"
                )
            if part.pairs != parts[0].pairs:
                raise UserError(f"{part.path}: pairs and text cannot be mixed")
        self.parts = tuple(parts)
        self.shares = tuple(weight / total for weight in weights)
        self.path = Path(name)

    @cached_property
    def train(self) -> "MixedText":
        """What is trained on, of all of them."""
        return self.split("train")

    @cached_property
    def validation(self) -> "MixedText":
        """What is held out, of all of them."""
        return self.split("validation")

    def split(self, name: str) -> "MixedText":
        """A part of all of them by its name: train, validation or test.

        Raises:
            UserError: one of them has no such part.
        """
        return MixedText([part.split(name) for part in self.parts], self.shares)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of all of them."""
        return self.parts[0].tokenizer

    @property
    def train_tokens(self) -> int:
        """Tokens of all of them to train on."""
        return sum(part.train_tokens for part in self.parts)

    @property
    def pairs(self) -> bool:
        """They hold pairs of a source and a target."""
        return self.parts[0].pairs

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell these corpora with these shares from any others."""
        lines = [f"{part.fingerprint} {share:.12g}\n" for part, share in zip(self.parts, self.shares, strict=True)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]

    def interleaving(self, seed: int, first: int, count: int) -> "Interleaving":
        """From which corpus the rows of a training come, from row `first` of all on; see `Interleaving`."""
        return Interleaving.of(self.shares, seed, first, count)


AnyCorpus = Mixture | Corpus


def corpora_of(corpus: AnyCorpus) -> tuple[Corpus, ...]:
    """Those of a mixture, or the single one."""
    return corpus.parts if isinstance(corpus, Mixture) else (corpus,)


class MixedText:
    """The same part, training or held-out, of several corpora."""

    def __init__(self, splits: Sequence[Split], shares: Sequence[float]) -> None:
        self.splits, self.shares = tuple(splits), tuple(shares)

    @property
    def tokens_per_byte(self) -> float:
        """Tokens for each byte of the mixture, in whose tokens each corpus has its share."""
        return 1 / sum(share / split.tokens_per_byte for share, split in zip(self.shares, self.splits, strict=True))

    def unigram_entropy(self) -> float:
        """Loss of knowing each corpus's own frequencies alone, nats a token, on average."""
        return sum(share * split.unigram_entropy() for share, split in zip(self.shares, self.splits, strict=True))


class Interleaving:
    """From which corpus each of some rows comes, and which of that corpus's rows, in its own order, it is.

    Attributes:
        corpora: (N,) the number of the corpus.
        first: for each corpus, which of its rows the first of these is.
    """

    def __init__(self, corpora: NDArray[np.int64], first: Sequence[int]) -> None:
        self.corpora, self.first = corpora, tuple(first)

    @classmethod
    def of(cls, shares: Sequence[float], seed: int, first: int, count: int) -> "Interleaving":
        """The rows from `first` of the endless sequence of all rows on; a function of the arguments alone.

        In every `PERIOD` rows each corpus has exactly its share, rounded, and their order is drawn.
        """
        counts = apportioned(shares, PERIOD)
        period, place = divmod(first, PERIOD)
        last = (first + count - 1) // PERIOD
        labels = np.concatenate([_period(counts, seed, number) for number in range(period, last + 1)])
        before = np.bincount(labels[:place], minlength=len(shares))
        starts = [period * own + int(seen) for own, seen in zip(counts, before, strict=True)]
        return cls(labels[place : place + count], starts)


@lru_cache(maxsize=8)
def _period(counts: tuple[int, ...], seed: int, number: int) -> NDArray[np.int64]:
    """(PERIOD,) the corpus of each row of a period."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return labels[permute(np.arange(PERIOD), PERIOD, key_of(seed, 0, "mixture"), number)]


def apportioned(shares: Sequence[float], count: int) -> tuple[int, ...]:
    """Whole numbers that add up to `count`, in these shares; the largest remainders are rounded up."""
    exact = np.array(shares) * count
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return tuple(whole.tolist())


def mixture_parts(text: str) -> list[tuple[Path, str]]:
    """The directories and weights that `wiki:0.7,novels:0.3` names; none where it names a single directory."""
    found = [_PART.fullmatch(part) for part in text.split(",")]
    if Path(text).exists() or None in found:
        return []
    return [(Path(match["path"]), match["weight"]) for match in found if match is not None]


def open_corpus(path: str | Path) -> Corpus | Mixture:
    """Open a corpus, or a mixture of several: `wiki:0.7,novels:0.3`.

    Raises:
        UserError: as of `Corpus.open` and `Mixture`.
    """
    text = str(path)
    parts = mixture_parts(text)
    if not parts:
        if not Path(text).exists() and ("," in text or ":" in text):
            raise UserError(
                f"{text}: no such corpus; of several give each with its weight, a positive number: wiki:0.7,novels:0.3"
            )
        return Corpus.open(path)
    try:
        weights = [float(weight) for _, weight in parts]
    except ValueError:
        raise UserError(f"{text}: a weight is no number; write for example wiki:0.7,novels:0.3") from None
    return Mixture([Corpus.open(each) for each, _ in parts], weights, text)
