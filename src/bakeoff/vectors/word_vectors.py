"""Vectors of words in their contexts: the mean of the states of a word's tokens, in the text that they stand in.

Shapes: T tokens of a text, W words or tokens, B rows, D width.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.reading.text_files import Texts, read_ahead
from bakeoff.scoring.token_scores import batches
from bakeoff.scoring.windows import windows_around, windows_behind
from bakeoff.tasks.rows.batches import collate
from bakeoff.tokenizer.offsets import PlacedTokens
from bakeoff.tokenizer.stretches import Per, Stretch, require_per, stretches_of
from bakeoff.vectors.embedder import Embedder

TEXTS_AT_ONCE = 256
"""Largest number of texts that are read ahead, so that texts of similar length share a batch."""

_BARE = regex.compile(r"\P{P}(?:.*\P{P})?", regex.DOTALL)


class Word(NamedTuple):
    """A word or a token of a text."""

    text: str
    """The word without the punctuation at its ends, or the token, as the text has it; punctuation alone is a word."""
    start: int
    """The index of its first character in the raw text."""
    end: int
    """The index after its last character."""
    tokens: int
    """The number of its tokens, of which the vector is the mean; 0 for a word that the tokenizer leaves out."""


class WordVectors(NamedTuple):
    """The words or tokens of a text, with their vectors."""

    words: list[Word]
    """The W words or tokens, in their order."""
    vectors: NDArray[np.float32]
    """(W, D) vectors; 0 for a word without tokens."""


def word_vectors(embedder: Embedder, texts: Sequence[str], per: Per = "word") -> list[WordVectors]:
    """The vectors of the words or tokens of each text.

    A text longer than a row is read in windows that overlap by half, and each token has the state of the window in
    which it has most context. Words are those of `bakeoff score --per word`, less the punctuation at their ends.

    Args:
        embedder: the run, and the layers whose states are averaged.
        texts: N texts.
        per: word or token.

    Raises:
        UserError: the pooling is not the mean, `per` is neither, or a vector has a number that is not finite.
    """
    require_mean(embedder)
    require_per(per)
    placed = embedder.format.tokenizer.encode_placed(texts)
    results = []
    for text, tokens, states in zip(texts, placed, _states(embedder, placed), strict=True):
        stretches = stretches_of(text, tokens, per)
        if per == "word":
            stretches = [_bare(text, each, tokens) for each in stretches]
        vectors = np.zeros((len(stretches), embedder.width), np.float32)
        for row, each in enumerate(stretches):
            if each.first < each.until:
                vectors[row] = states[each.first : each.until].mean(0)
        words = [Word(text[each.start : each.end], each.start, each.end, each.until - each.first) for each in stretches]
        results.append(WordVectors(words, vectors))
    return results


def words_embedded(embedder: Embedder, texts: Texts, per: Per) -> Iterator[list[tuple[str, WordVectors]]]:
    """Texts in their order with the vectors of their words, part by part.

    Raises:
        UserError: the file has a mistake, or as for `word_vectors`.
    """
    for part in read_ahead(texts, TEXTS_AT_ONCE):
        chosen = [text for (text,) in part]
        yield list(zip(chosen, word_vectors(embedder, chosen, per), strict=True))


def require_mean(embedder: Embedder) -> None:
    """Refuse another pooling than the mean.

    Raises:
        UserError: the pooling is another.
    """
    if embedder.pooling != "mean":
        raise UserError(f"pooling {embedder.pooling}: a word's vector is the mean of its tokens; leave it out")


def _states(embedder: Embedder, placed: Sequence[PlacedTokens]) -> list[NDArray[np.float32]]:
    """The (T, D) states of each text's tokens."""
    format = embedder.format
    windows = windows_behind if format.reads_forwards else windows_around
    parts = [(text, each) for text, tokens in enumerate(placed) for each in windows(len(tokens.ids), format.room)]
    states_of = [np.zeros((len(tokens.ids), embedder.width), np.float32) for tokens in placed]
    if not parts:
        return states_of
    encoded = format.framed([placed[text].ids[window.begin : window.end] for text, window in parts])
    before = format.before - embedder.hides_first
    for rows in batches(encoded.lengths, embedder.device):
        batch = collate(encoded, np.array(rows), format).to(embedder.device)
        states = embedder.states(batch)[0].cpu().numpy()  # (B, T, D)
        for row, number in enumerate(rows):
            text, window = parts[number]
            first = before + window.scored - window.begin
            states_of[text][window.scored : window.until] = states[row, first : first + window.until - window.scored]
    for state in states_of:
        embedder.require_finite(state)
    return states_of


def _bare(text: str, stretch: Stretch, placed: PlacedTokens) -> Stretch:
    """A word without the punctuation at its ends, and the tokens that hold some of it; punctuation alone stays."""
    bare = _BARE.search(text, stretch.start, stretch.end)
    if bare is None or bare.span() == (stretch.start, stretch.end):
        return stretch
    begin, end = bare.span()
    tokens = range(stretch.first, stretch.until)
    held = [token for token in tokens if placed.begin[token] < end and placed.end[token] > begin]
    return Stretch(begin, end, held[0], held[-1] + 1) if held else Stretch(begin, end, stretch.first, stretch.first)
