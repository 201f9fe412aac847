"""Words and grapheme clusters of any text by Unicode's segmentation (UAX #29): the one definition for all parts.

A grapheme cluster is what a reader takes for one character: a letter with its vowel signs and accents, a syllable of
Hangul, an emoji with all that is joined to it. No word begins or ends inside of one. A word is a run of letters and
digits with their marks. Scripts that put no spaces between words need a dictionary to find them, and each of their
clusters counts as a word. Apostrophes, hyphens and separators in numbers end a word: UAX #29 keeps some of them inside,
but labelled spans end there, and so do the words of the scores that are published for English.

Patterns are written for the library `regex` with its flag V1.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from unicodedata import normalize

import regex

IDEOGRAPHS = r"\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Ideographs and kana with the punctuation among them, as the inside of a regular expression's character class."""

ALPHABETS_WITHOUT_SPACES = (
    r"\u0e00-\u109f"  # Thai, Lao, Tibetan, Burmese
    r"\u1780-\u17ff"  # Khmer
    r"\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le and New Tai Lue, Tai Tham, Tai Viet
    r"\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"  # Burmese, extended
    r"\U00011700-\U0001174f"  # Ahom
)
"""Alphabets that put no spaces between words, as the inside of a character class."""

WITHOUT_SPACES = rf"[[{IDEOGRAPHS}{ALPHABETS_WITHOUT_SPACES}]--\p{{Nd}}]"
"""A character of a script that puts no spaces between words; numbers in its digits are words like others."""

_MARK = r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]"
CLUSTER = rf"(?:\X(?:(?={_MARK})\X)*+)"  # \X cuts some vowel signs of Burmese and Tai Tham off
"""A grapheme cluster."""

_LETTER = rf"[[\w\p{{N}}]--[\p{{M}}\p{{Cf}}]--{WITHOUT_SPACES}]"
_INSIDE = rf"[[\w\p{{N}}{_MARK}\p{{WB=Extend}}\p{{WB=Format}}\p{{WB=ZWJ}}]--[{WITHOUT_SPACES}--{_MARK}]]"
RUN = rf"(?:\p{{GCB=Prepend}}*+{_LETTER}{_INSIDE}*+)"
"""A word of a script with spaces: letters and digits, and after each the marks and joiners that belong to it."""

WORD = rf"(?:\p{{GCB=Prepend}}*+(?=[{WITHOUT_SPACES}&&[\w\p{{N}}]]){CLUSTER}|{RUN})"
"""A word."""

_WORD = regex.compile(WORD, regex.V1)
_ANY = regex.compile(rf"{WORD}|(?![[\s\p{{Cc}}\p{{Cf}}]--\p{{GCB=Prepend}}]){CLUSTER}", regex.V1)
_CLUSTER = regex.compile(CLUSTER, regex.V1)
_PLAIN_WORD, _PLAIN_ANY = re.compile(r"\w+", re.ASCII), re.compile(r"\w+|[!-/:-@\[-`{-~]", re.ASCII)


def words(text: str) -> list[str]:
    """The words of a text in NFC, in their order, without punctuation and other signs."""
    return _PLAIN_WORD.findall(text) if text.isascii() else _WORD.findall(normalize("NFC", text))


def words_and_signs(text: str) -> list[tuple[str, int]]:
    """The words of a text, and each other grapheme cluster that can be seen, as the text has them, with their starts.

    White space, control characters and invisible ones alone are left out.
    """
    pattern = _PLAIN_ANY if text.isascii() else _ANY
    return [(match.group(), match.start()) for match in pattern.finditer(text)]


def whole_clusters(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans of a text, each widened so that it neither begins nor ends inside a grapheme cluster.

    Args:
        text: the text, in any form.
        spans: the first character of each span, and the one after its last.
    """
    if text.isascii():
        return list(spans)
    bounds = [match.start() for match in _CLUSTER.finditer(text)] + [len(text)]
    return [(bounds[bisect_right(bounds, begin) - 1], bounds[bisect_left(bounds, end)]) for begin, end in spans]
