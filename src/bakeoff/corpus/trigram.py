"""The loss of a model that counts three tokens at a time: what a language model has to beat to have learned more."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.corpus.store import Corpus
from bakeoff.user_cache import cache, cached

KEPT_FROM = 1_000_000
"""Tokens of a training text whose counting takes so long, some tenths of a second, that it is kept."""

_VERSION = 1  # of the counting: another one gives other losses

MOST_TOKENS = 20_000_000
"""Tokens of the training text that are counted, from its beginning; more would not fit a laptop's memory beside a
training."""


def trigram_bits(corpus: Corpus) -> float | None:
    """Bits a byte of the held-out text by `trigram_loss`; None: the corpus has pairs, or its text is hidden."""
    held_out = corpus.validation
    if held_out.pairs or held_out.no_bits_per_byte or not len(held_out.tokens):
        return None
    return _loss_of(corpus) * held_out.tokens_per_byte / math.log(2)


_KEPT: dict[str, float] = {}
"""Losses by the name of the count, each counted once by a process."""


def _loss_of(corpus: Corpus) -> float:
    """The loss, counted once; of a corpus of some size the user's cache keeps it for other processes."""
    name = f"{corpus.fingerprint}-{corpus.tokenizer.size}-{MOST_TOKENS}-{_VERSION}"
    if name not in _KEPT:
        large = len(corpus.train.tokens) >= KEPT_FROM
        loss = cached("trigrams", name).get("loss") if large else None
        if not isinstance(loss, float):
            loss = trigram_loss(corpus.train, corpus.validation, corpus.tokenizer.size)
            if large:
                cache("trigrams", name, {"loss": loss})
        _KEPT[name] = loss
    return _KEPT[name]


def trigram_loss(train: Split, held_out: Split, vocabulary: int) -> float:
    """Loss of an interpolated Kneser-Ney trigram model of a text on a held-out one, in nats a token.

    With c the counts, N1+(. v w) the number of different tokens before v w, and a discount d = n1 / (n1 + 2 n2) of each
    order, where n1 and n2 are the numbers of n-grams that are counted once and twice (Ney, Essen and Kneser 1994; Chen
    and Goodman 1998, with one discount an order):

        p(w | u v) = max(c(u v w) - d3, 0) / c(u v) + d3 N1+(u v .) / c(u v) p(w | v)
        p(w | v) = max(N1+(. v w) - d2, 0) / N1+(. v .) + d2 N1+(v .) / N1+(. v .) p(w)
        p(w) = max(N1+(. w) - d1, 0) / N1+(. .) + d1 N1+ / N1+(. .) / (V + 1)

    Every document ends with a token that is predicted, too, and two of them stand before the first.

    Args:
        train: the text that is counted, its first 20 million tokens.
        held_out: the text that is predicted, which is no translation.
        vocabulary: number of tokens V of the tokenizer.
    """
    symbols = vocabulary + 1
    words = _with_ends(train, vocabulary, MOST_TOKENS)
    trigrams = _counted(_keys(words, 3, symbols))
    bigrams = _counted(trigrams.keys % symbols**2)
    unigrams = _counted(bigrams.keys % symbols)
    target = _keys(_with_ends(held_out, vocabulary, None), 3, symbols)
    probability = np.full(len(target), 1 / symbols)
    for order, counts in enumerate((unigrams, bigrams, trigrams), start=1):
        probability = counts.interpolated(target % symbols**order, symbols, probability)
    return float(-np.log(probability).mean())


class _Counts(NamedTuple):
    """N-grams of one order: their keys, ascending, and how often each is counted."""

    keys: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def discount(self) -> float:
        """What is taken from every count; one half where none is counted once or twice."""
        once, twice = (int(np.count_nonzero(self.numbers == number)) for number in (1, 2))
        return once / (once + 2 * twice) if once and twice else 0.5

    def interpolated(
        self, target: NDArray[np.int64], symbols: int, shorter: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probabilities of the last tokens of n-grams after the others; `shorter` has those of the order below."""
        discount = self.discount()
        contexts, first = np.unique(self.keys // symbols, return_index=True)
        sums = np.add.reduceat(self.numbers, first)
        kinds = np.diff(first, append=len(self.keys))
        context = _place(contexts, target // symbols)
        known = context >= 0
        total = np.where(known, sums[context], 1)
        ngram = _place(self.keys, target)
        kept = np.where(ngram >= 0, np.maximum(self.numbers[ngram] - discount, 0), 0) / total
        return np.where(known, kept + discount * kinds[context] / total * shorter, shorter)


def _counted(keys: NDArray[np.int64]) -> _Counts:
    return _Counts(*np.unique(keys, return_counts=True))


def _place(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each wanted key among ascending ones; -1: it is not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def _keys(words: NDArray[np.int64], order: int, symbols: int) -> NDArray[np.int64]:
    """One number for each n-gram, whose last digit is the last token."""
    keys = np.zeros(len(words) - order + 1, np.int64)
    for place in range(order):
        keys = keys * symbols + words[place : len(words) - order + 1 + place]
    return keys


def _with_ends(split: Split, end: int, most: int | None) -> NDArray[np.int64]:
    """The tokens of a text with an end after each document, and two before the first."""
    tokens = np.asarray(split.tokens[:most], np.int64)
    ends = split.documents[1:][split.documents[1:] <= len(tokens)]
    return np.concatenate([[end, end], np.insert(tokens, ends, end)])
