"""The starts of words in a text, whatever the tokenizer: words are the units of whole-word and n-gram masking."""

import unicodedata
from functools import cache

import numpy as np

IDEOGRAPHS = r"⺀-鿿豈-﫿\U00020000-\U0003ffff"
"""Ideographs and kana with the punctuation among them, as the inside of a regular expression's character class."""

_ORDINARY, _SPACE, _ALONE, _MARK = 0, 1, 2, 3

# Scripts that are written without spaces: each character counts as a word. Thai, Lao, Burmese, Tibetan and Khmer; the
# CJK blocks with their punctuation, kana and full-width forms; the supplementary ideographs.
_UNSPACED = [
    (0x0E00, 0x0F00), (0x0F00, 0x10A0), (0x1780, 0x1800), (0x2E80, 0xA000), (0xF900, 0xFB00), (0xFE30, 0xFE50),
    (0xFF00, 0xFF66), (0x20000, 0x40000),
]  # fmt: skip


@cache
def _classes() -> np.ndarray:
    """Class of every code point, (0x110000,) uint8."""
    classes = np.zeros(0x110000, dtype=np.uint8)
    for first, last in _UNSPACED:
        classes[first:last] = _ALONE
    for code in range(0x20000):
        character = chr(code)
        if character.isspace():
            classes[code] = _SPACE
        elif unicodedata.category(character)[0] == "M":
            classes[code] = _MARK
    classes[0xE0100:0xE01F0] = _MARK  # variation selectors of ideographs
    return classes


def words_before(text: str, first: np.ndarray | None = None) -> np.ndarray:
    """The number of words that start before each character.

    A word is a run of characters other than whitespace together with the whitespace before it (so that a token such as
    ``" the"`` or a lone space belongs to the word that it introduces); in scripts without spaces each character is one.

    Args:
        text: any text.
        first: (n,) positions that start a word in any case, such as the starts of joined texts; by default 0.

    Returns:
        (len(text) + 1,) int32; entry p counts the words that start at a position below p.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    count = np.zeros(len(codes) + 1, dtype=np.int32)
    if len(codes) == 0:
        return count
    kind = _classes()[codes]
    before = np.empty_like(kind)
    before[0] = _ORDINARY
    before[1:] = kind[:-1]
    space = kind == _SPACE
    starts = space & (before != _SPACE)
    alone = (kind == _ALONE) | ((before == _ALONE) & (kind == _ORDINARY))
    starts |= alone & (before != _SPACE)
    starts[0 if first is None else first[first < len(codes)]] = True
    np.cumsum(starts, out=count[1:])
    return count


def separates_words(before: str, after: str) -> bool:
    """Whether a word starts at the second of two characters that stand side by side, neither of them whitespace."""
    kind = _classes()[ord(after)]
    return bool(kind == _ALONE or (kind == _ORDINARY and _classes()[ord(before)] == _ALONE))
