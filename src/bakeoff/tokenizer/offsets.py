"""Positions of tokens in the original of a normalised text."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_WORD = re.compile(r"\S+")


class PlacedTokens(NamedTuple):
    """A text of T tokens, and the stretch of the original text for each token."""

    ids: np.ndarray
    """(T,) int64 ids."""
    begin: np.ndarray
    """(T,) int64 index of each token's first character."""
    end: np.ndarray
    """(T,) int64 index after each token's last character; equal to `begin` for a token without characters."""


class CleanedText(NamedTuple):
    """A text of C characters, normalised as in a corpus: Unicode NFC, and single spaces for runs of whitespace."""

    text: str
    """(C,) the text."""
    begin: np.ndarray
    """(C,) int64 index in the original at which each character begins."""
    end: np.ndarray
    """(C,) int64 index in the original after each character."""

    def place(self, ids: np.ndarray, offsets: list[tuple[int, int]]) -> PlacedTokens:
        """The offsets of the cleaned text's tokens in the original.

        Args:
            ids: (T,) ids.
            offsets: (T,) begin and end of each token in the cleaned text.
        """
        begin, end = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        for token, (first, last) in enumerate(offsets):
            if first < last:
                begin[token], end[token] = self.begin[first], self.end[last - 1]
            else:
                begin[token] = end[token] = self.end[first - 1] if first else 0
        return PlacedTokens(ids, begin, end)


def cleaned(original: str) -> CleanedText:
    """The text `" ".join(unicodedata.normalize("NFC", original).split())`, and the origin of each of its characters.

    A space stands for all whitespace between two words, a composed character for all characters that it is made of.
    """
    parts: list[str] = []
    begin: list[int] = []
    end: list[int] = []
    for match in _WORD.finditer(original):
        if parts:
            parts.append(" ")
            begin.append(end[-1])
            end.append(match.start())
        for first, last in _characters(match.group()):
            composed = unicodedata.normalize("NFC", match.group()[first:last])
            parts.append(composed)
            begin += [match.start() + first] * len(composed)
            end += [match.start() + last] * len(composed)
    return CleanedText("".join(parts), np.array(begin, np.int64), np.array(end, np.int64))


def _characters(word: str) -> Iterator[tuple[int, int]]:
    """The shortest stretches of a word that can be normalised independently."""
    if unicodedata.is_normalized("NFC", word):
        yield from ((index, index + 1) for index in range(len(word)))
        return
    first = 0
    for index in range(1, len(word)):
        before, sign = word[first:index], word[index]
        if unicodedata.combining(sign):
            continue
        alone = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", sign)
        # A sign that is none of the combining ones may still join the one before it, as the letters of Hangul do.
        if unicodedata.normalize("NFC", before + sign) == alone:
            yield first, index
            first = index
    yield first, len(word)
