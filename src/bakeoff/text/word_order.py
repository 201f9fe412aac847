"""Shuffled n-grams within sentences, a control for the information in the order of words (Sinha et al. 2021)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.randomness.draws import Draws
from bakeoff.text.words import separates_words, words_before

_PIECE = 16  # bits; no piece of text has more words


class NgramShuffle(NamedTuple):
    """Settings of a shuffle, which permutes n-grams of words."""

    ngram: int
    """Number of words in an n-gram, which stay together in their order."""
    seed: int
    """Key of the random numbers."""


def shuffle_ngrams(pieces: Sequence[Sequence[str]], first: int, shuffle: NgramShuffle) -> list[list[str]]:
    """Shuffle n-grams of words within each sentence, as Sinha et al. 2021 (arXiv:2104.06644) do.

    N-grams that do not overlap are drawn at random positions of the sentence until no more fit; each word between
    n-grams is a unit by itself. All units are then permuted by a random cycle, so that none keeps its position.

    Args:
        pieces: sentences of each piece of the text.
        first: number of the first piece in the whole text. The number of a piece and a word's position in it are the
            counter of the word's random numbers, so that the result does not depend on the text's division into calls.
        shuffle: size of the n-grams, and the seed.

    Returns:
        The sentences of each piece, with the same words. Whitespace that opens a sentence stays there; the other words
        keep the space before them, or get one where two words would grow together.
    """
    sentences = [sentence for piece in pieces for sentence in piece]
    text = "".join(sentences)
    bounds = np.cumsum([0, *map(len, sentences)])
    before = words_before(text, bounds[:-1])
    starts = np.flatnonzero(np.diff(before)).tolist()
    words = [text[a:b] for a, b in pairwise([*starts, len(text)])]
    opens = before[bounds].tolist()  # the word with which each sentence opens
    arrange, choose = _random(pieces, opens, first, shuffle)
    shuffled = iter(_shuffled(words[a:b], arrange[a:b], choose[a:b], shuffle.ngram) for a, b in pairwise(opens))
    return [[next(shuffled) for _ in piece] for piece in pieces]


def _random(
    pieces: Sequence[Sequence[str]], opens: list[int], first: int, shuffle: NgramShuffle
) -> tuple[list[int], list[int]]:
    """Two random numbers for each word: one orders the units, the other the positions that are tried for n-grams."""
    sentence = np.cumsum([0, *map(len, pieces)])
    of_piece = np.array(opens, dtype=np.int64)[sentence]  # the word with which each piece opens
    counts = np.diff(of_piece)
    numbers = first + np.arange(len(pieces), dtype=np.int64)
    positions = np.arange(of_piece[-1]) - np.repeat(of_piece[:-1], counts)
    words: NDArray[np.int64] = np.repeat(numbers, counts) << _PIECE | positions
    drawn = Draws(shuffle.seed, np.zeros_like(words), words).words("word order", 2)
    return drawn[:, 0].tolist(), drawn[:, 1].tolist()


def _shuffled(words: list[str], arrange: list[int], choose: list[int], ngram: int) -> str:
    units = _units(len(words), ngram, choose)
    if len(units) < 2:
        return "".join(words)
    body = words[0].lstrip()
    opening = words[0][: len(words[0]) - len(body)]
    words[0] = body
    order = sorted(range(len(units)), key=lambda unit: arrange[units[unit][0]])
    taken = [(0, 0)] * len(units)
    for position, unit in zip(order, [*order[1:], order[0]], strict=True):
        taken[position] = units[unit]
    moved = [word for a, b in taken for word in words[a:b]]
    parts = [opening + moved[0].lstrip()]
    for previous, word in pairwise(moved):
        parts.append(word if word[0].isspace() or separates_words(previous, word) else " " + word)
    return "".join(parts)


def _units(count: int, ngram: int, choose: list[int]) -> list[tuple[int, int]]:
    """The bounds of units: n-grams, and the words between n-grams."""
    if ngram == 1:
        return [(i, i + 1) for i in range(count)]
    free = [True] * count
    units = []
    for start in sorted(range(count - ngram + 1), key=choose.__getitem__):
        if all(free[start : start + ngram]):
            free[start : start + ngram] = [False] * ngram
            units.append((start, start + ngram))
    return sorted(units + [(i, i + 1) for i in range(count) if free[i]])
