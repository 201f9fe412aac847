"""The starts of words in a text, whatever the tokenizer: words are the units of whole-word and n-gram masking."""

from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

from bakeoff.text.segmentation import CLUSTER, WITHOUT_SPACES

_ORDINARY, _SPACE, _ALONE, _MARK = 0, 1, 2, 3
_CLUSTER = regex.compile(CLUSTER, regex.V1)
_STACKS = regex.compile(rf"[\p{{InCB=Linker}}&&{WITHOUT_SPACES}]", regex.V1)  # signs that join letters to one cluster


@cache
def _classes() -> NDArray[np.uint8]:
    """Class of every code point, (0x110000,)."""
    classes = np.zeros(0x110000, np.uint8)
    classes[0x20000:0x40000] = _ALONE  # ideographs
    alone = rf"{WITHOUT_SPACES}|[\ufe30-\ufe4f\uff00-\uff65]"  # and the punctuation and full-width forms beside them
    marks = r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]"
    for first, last in ((0, 0xD800), (0xE000, 0x20000), (0xE0000, 0xE0200)):  # the planes that have such characters
        every = "".join(map(chr, range(first, last)))
        for kind, pattern in ((_ALONE, alone), (_MARK, marks)):
            for match in regex.finditer(rf"(?:{pattern})+", every, regex.V1):
                classes[first + match.start() : first + match.end()] = kind
    classes[[code for code in range(0x3001) if chr(code).isspace()]] = _SPACE
    return classes


def words_before(text: str, first: np.ndarray | None = None) -> np.ndarray:
    """The number of words that start before each character.

    A word is a run of characters other than whitespace together with the whitespace before it (so that a token such as
    ``" the"`` or a lone space belongs to the word that it introduces); in scripts without spaces each grapheme cluster
    is one.

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
    opens = np.zeros(1, np.int64) if first is None else first[first < len(codes)]
    kind = _classes()[codes]
    before = np.empty_like(kind)
    before[0] = _ORDINARY
    before[1:] = _of_clusters(kind, opens)[:-1]
    starts = (kind == _SPACE) & (before != _SPACE)
    alone = (kind == _ALONE) | ((before == _ALONE) & (kind == _ORDINARY))
    alone &= before != _SPACE
    if (kind == _ALONE).any() and _STACKS.search(text):
        begins = np.zeros(len(codes), bool)
        begins[[match.start() for match in _CLUSTER.finditer(text)]] = True
        alone &= begins
    starts |= alone
    starts[opens] = True
    np.cumsum(starts, out=count[1:])
    return count


def _of_clusters(kind: NDArray[np.uint8], opens: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The class of the character that each mark belongs to, and of each other character; of lone marks, ordinary.

    Args:
        kind: (n,) classes of characters.
        opens: positions at which a text begins, where a mark has no letter.
    """
    if not (kind == _MARK).any():
        return kind
    kind = kind.copy()
    kind[opens[kind[opens] == _MARK]] = _ORDINARY
    marks = kind == _MARK
    base = np.maximum.accumulate(np.where(marks, 0, np.arange(len(kind))))
    classes = kind[base]
    classes[marks & ((classes == _SPACE) | (classes == _MARK))] = _ORDINARY
    return classes


def separates_words(before: str, after: str) -> bool:
    """Whether a word starts between two texts that stand side by side, with no whitespace where they meet.

    Args:
        before: a text, of which the last cluster counts.
        after: a text, of which the first character counts.
    """
    kinds = _classes()[[ord(character) for character in before[-32:] + after[0]]]
    kind, last = kinds[-1], _of_clusters(kinds, np.zeros(1, np.int64))[-2]
    return bool(kind == _ALONE or (kind == _ORDINARY and last == _ALONE))
