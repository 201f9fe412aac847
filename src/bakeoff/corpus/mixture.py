"""Several corpora as one text, each with its share of a training's rows."""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split, too_much_hidden
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.identity import same_ids
from bakeoff.tokenizer.tokenizer import Tokenizer

PERIOD = 10_000
"""Number of rows in which each corpus has its exact share, in a random order."""

_ENTRY = re.compile(r"(?P<path>.+):(?P<weight>[0-9.]+(?:e-?[0-9]+)?)")


class Mixture:
    """Corpora that were prepared with one tokenizer, read side by side.

    Attributes:
        corpora: the mixed corpora.
        shares: the share of rows of each corpus; the shares add up to 1.
        path: the mixture as the user wrote it, such as `wiki:0.7,novels:0.3`.
    """

    def __init__(self, corpora: Sequence[Corpus], weights: Sequence[float], name: str) -> None:
        """Mix corpora with weights.

        Raises:
            UserError: a weight is no positive number, or too small beside the others; or the corpora differ in kind or
                tokenizer.
        """
        total = sum(weights)
        if not min(weights) > 0:
            raise UserError(f"{name}: a weight of {min(weights):g}; give each corpus a weight above 0")
        for corpus, weight in zip(corpora, weights, strict=True):
            if round(weight / total * PERIOD) < 1:
                raise UserError(
                    f"{corpus.path}: a weight of {weight:g} of {total:g} in all is less than a row in {PERIOD:,}; "
                    "give more, or leave the corpus out"
                )
            if not same_ids(corpus.tokenizer, corpora[0].tokenizer):
                raise UserError(
                    f"{corpus.path}: prepared with another tokenizer than {corpora[0].path}; prepare it with "
                    f"`--tokenizer {quote(str(corpora[0].path / 'tokenizer.json'))}`"
                )
            if corpus.pairs != corpora[0].pairs:
                raise UserError(f"{corpus.path}: pairs and text cannot be mixed")
        self.corpora = tuple(corpora)
        self.shares = tuple(weight / total for weight in weights)
        self.path = Path(name)

    @cached_property
    def train(self) -> "MixedText":
        """The training text of all corpora."""
        return self.split("train")

    @cached_property
    def validation(self) -> "MixedText":
        """The held-out text of all corpora."""
        return self.split("validation")

    def split(self, name: str) -> "MixedText":
        """A split of all corpora by its name: train, validation or test.

        Raises:
            UserError: a corpus has no such split.
        """
        return MixedText([corpus.split(name) for corpus in self.corpora], self.shares)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that all corpora share."""
        return self.corpora[0].tokenizer

    @property
    def train_tokens(self) -> int:
        """Training tokens of all corpora together."""
        return sum(corpus.train_tokens for corpus in self.corpora)

    @property
    def words_per_token(self) -> float:
        """Words that a token of the mixed training text has, each corpus having its share of the tokens."""
        return sum(share * each.words_per_token for share, each in zip(self.shares, self.corpora, strict=True))

    @property
    def pairs(self) -> bool:
        """Whether the corpora hold pairs of a source and a target."""
        return self.corpora[0].pairs

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that identify the corpora with their shares."""
        lines = [
            f"{corpus.fingerprint} {share:.12g}\n" for corpus, share in zip(self.corpora, self.shares, strict=True)
        ]
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]

    def interleaving(self, seed: int, first: int, count: int) -> "Interleaving":
        """The corpus of each of `count` rows of a training, from row `first` on; see `Interleaving`."""
        return Interleaving.of(self.shares, seed, first, count)


AnyCorpus = Mixture | Corpus


def corpora_of(corpus: AnyCorpus) -> tuple[Corpus, ...]:
    """The corpora of a mixture, or the single corpus."""
    return corpus.corpora if isinstance(corpus, Mixture) else (corpus,)


def mixed_tokens_per_byte(each: Sequence[float], shares: Sequence[float]) -> float:
    """Tokens for each byte of a text in which each corpus has its share of the tokens, from those of each corpus."""
    return 1 / sum(share / tokens for share, tokens in zip(shares, each, strict=True))


class MixedText:
    """One split of several corpora."""

    def __init__(self, splits: Sequence[Split], shares: Sequence[float]) -> None:
        self.splits, self.shares = tuple(splits), tuple(shares)

    @property
    def tokens_per_byte(self) -> float:
        """Tokens for each byte of a text in which each corpus has its share of the tokens."""
        return mixed_tokens_per_byte([split.tokens_per_byte for split in self.splits], self.shares)

    @property
    def hidden(self) -> HiddenText | None:
        """Counts of unknown tokens and hidden characters of all corpora; None: not counted, in one of them."""
        known = [split.hidden for split in self.splits if split.hidden is not None]
        return sum(known, HiddenText()) if len(known) == len(self.splits) else None

    @property
    def all_unknown(self) -> bool:
        """Whether each corpus has unknown tokens alone."""
        return all(split.all_unknown for split in self.splits)

    @property
    def no_bits_per_byte(self) -> str | None:
        """The reason why bits per byte of this text are no number; None: they are one."""
        hidden = [split.hidden_share for split in self.splits]
        known = [hidden_share for hidden_share in hidden if hidden_share is not None]
        if len(known) < len(hidden):
            return too_much_hidden(None)
        return too_much_hidden(
            sum(share * hidden_share for share, hidden_share in zip(self.shares, known, strict=True))
        )

    def unigram_entropy(self) -> float:
        """Mean loss of guessing each token by the frequencies of its own corpus, nats a token."""
        return sum(share * split.unigram_entropy() for share, split in zip(self.shares, self.splits, strict=True))


class Interleaving:
    """The corpus of each row of a stretch of a training, and the row's number in its corpus's own order.

    Attributes:
        corpora: (N,) the number of the corpus.
        first: for each corpus, the number of its first row in the stretch, in its own order.
    """

    def __init__(self, corpora: NDArray[np.int64], first: Sequence[int]) -> None:
        self.corpora, self.first = corpora, tuple(first)

    @classmethod
    def of(cls, shares: Sequence[float], seed: int, first: int, count: int) -> "Interleaving":
        """`count` rows from row `first` on, of the endless sequence of all rows; a function of the arguments alone.

        Every `PERIOD` rows hold exactly the share of each corpus, rounded, in a random order.
        """
        counts = apportioned(shares, PERIOD)
        period, offset = divmod(first, PERIOD)
        last = (first + count - 1) // PERIOD
        labels = np.concatenate([_period(counts, seed, number) for number in range(period, last + 1)])
        before = np.bincount(labels[:offset], minlength=len(shares))
        starts = [period * count_of_corpus + int(seen) for count_of_corpus, seen in zip(counts, before, strict=True)]
        return cls(labels[offset : offset + count], starts)


@lru_cache(maxsize=8)
def _period(counts: tuple[int, ...], seed: int, number: int) -> NDArray[np.int64]:
    """(PERIOD,) the corpus of each row of a period."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return labels[permute(np.arange(PERIOD), PERIOD, key_of(seed, 0, "mixture"), number)]


def apportioned(shares: Sequence[float], count: int) -> tuple[int, ...]:
    """Whole numbers in proportion to the shares, with the sum `count`; the largest remainders are rounded up."""
    exact = np.array(shares) * count
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return tuple(whole.tolist())


def mixture_entries(text: str) -> list[tuple[Path, str]]:
    """The directories and weights in a text such as `wiki:0.7,novels:0.3`; empty for a single directory."""
    matches = [_ENTRY.fullmatch(entry) for entry in text.split(",")]
    if Path(text).exists() or None in matches:
        return []
    return [(Path(match["path"]), match["weight"]) for match in matches if match is not None]


def open_corpus(path: str | Path) -> Corpus | Mixture:
    """Open a corpus, or a mixture of several: `wiki:0.7,novels:0.3`.

    Raises:
        UserError: as of `Corpus.open` and `Mixture`.
    """
    text = str(path)
    entries = mixture_entries(text)
    if not entries:
        if not Path(text).exists() and ("," in text or ":" in text):
            raise UserError(
                f"{text}: no such corpus; of several give each with its weight, a positive number: wiki:0.7,novels:0.3"
            )
        return Corpus.open(path)
    try:
        weights = [float(weight) for _, weight in entries]
    except ValueError:
        raise UserError(f"{text}: a weight is no number; write for example wiki:0.7,novels:0.3") from None
    return Mixture([Corpus.open(each) for each, _ in entries], weights, text)
