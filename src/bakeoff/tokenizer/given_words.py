"""Tokens of sentences whose words are given."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MARKS_OF_BEGINNINGS = ("▁", "Ġ")
"""Spaces as SentencePiece and byte-level BPE write them, which put them before a word."""


class EncodedWords(NamedTuple):
    """A sentence of W words in T tokens."""

    ids: np.ndarray
    """(T,) int64 ids."""
    first: np.ndarray
    """(W,) int64 index of each word's first token."""
    last: np.ndarray
    """(W,) int64 index of each word's last token."""


def words_of_tokens(
    words: Sequence[str], tokens: Sequence[str], offsets: Sequence[tuple[int, int]], marks: bool = True
) -> list[int | None]:
    """The index of the word of each token of a sentence; None for white space.

    Args:
        words: the sentence's words; its text has a space between each two.
        tokens: (T,) the tokens as the vocabulary has them.
        offsets: (T,) begin and end of each token in that text.
        marks: whether a mark of a word's beginning that is a token by itself is of the word that it begins, as
            `word_ids` of transformers has it.
    """
    text = " ".join(words)
    word_at = [word for word, text_of_word in enumerate(words) for _ in f"{text_of_word} "]  # of each character
    owners: list[int | None] = []
    for token, (begin, end) in zip(tokens, offsets, strict=True):
        last = len(text) if marks and token in MARKS_OF_BEGINNINGS else end
        inside = next((index for index in range(begin, last) if not text[index].isspace()), None)
        owners.append(None if inside is None else word_at[inside])
    return owners


def with_every_word(tokens: Sequence[tuple[int, int | None]], words: int, stand_in: int) -> EncodedWords:
    """The tokens of a sentence, with the token `stand_in` added for each word without a token.

    Args:
        tokens: the id and the word's index of each token; None for white space.
        words: number of words.
        stand_in: id of the added tokens.
    """
    ids: list[int] = []
    first, last = np.full(words, -1, np.int64), np.full(words, -1, np.int64)
    following = 0  # the first word that has had no token yet

    def put(token: int, word: int) -> None:
        if first[word] < 0:
            first[word] = len(ids)
        last[word] = len(ids)
        ids.append(token)

    for token, word in tokens:
        if word is None:
            ids.append(token)
            continue
        for missing in range(following, word):
            put(stand_in, missing)
        following = max(following, word + 1)
        put(token, word)
    for missing in range(following, words):
        put(stand_in, missing)
    return EncodedWords(np.array(ids, np.int64), first, last)
