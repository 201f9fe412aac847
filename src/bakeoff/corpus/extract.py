"""A small extract of a corpus that stands for all of it: stretches of its text from many positions."""

import numpy as np

from bakeoff.corpus.split import Split

STRETCHES = 8
"""Number of stretches, which are spread evenly over the text."""


class Extract(Split):
    """Stretches of a split, one after the other, held in memory; each begins and ends with a sentence.

    Args:
        split: the text.
        most: the largest number of tokens.
    """

    def __init__(self, split: Split, most: int) -> None:
        """Read the stretches; a document is cut where a stretch begins or ends inside it."""
        bounds = _bounds(split, most // STRETCHES)
        inside = [np.arange(first, last) for first, last in bounds]
        before = np.cumsum([0, *map(len, inside)])
        shifts = [offset - first for offset, (first, _) in zip(before[:-1].tolist(), bounds, strict=True)]
        owners = [_starts(split.documents, first, last) for first, last in bounds]
        numbers = [np.searchsorted(split.documents, starts, side="right") - 1 for starts in owners]
        sentences = [_starts(split.sentences, first, last) for first, last in bounds]
        self.tokens = np.concatenate([split.tokens[first:last] for first, last in bounds])
        self.sentences = np.append(np.concatenate(_shifted(sentences, shifts)), before[-1])
        self.documents = np.append(np.concatenate(_shifted(owners, shifts)), before[-1])
        self.originals = np.concatenate([split.originals[each] for each in numbers])
        self._words = np.packbits(split.starts_word(np.concatenate(inside)), bitorder="little")


def _bounds(split: Split, size: int) -> list[tuple[int, int]]:
    """The bounds of stretches of at most `size` tokens; a longer sentence is cut."""
    sentences, total = np.asarray(split.sentences), len(split.tokens)
    bounds: list[tuple[int, int]] = []
    for target in (np.arange(STRETCHES) * total // STRETCHES).tolist():
        first = int(sentences[np.searchsorted(sentences, target)])
        if first == total or (bounds and first < bounds[-1][1]):  # within a sentence that the last stretch has begun
            continue
        last = int(sentences[np.searchsorted(sentences, first + size, side="right") - 1])
        bounds.append((first, last if last > first else first + size))
    return bounds


def _starts(starts: np.ndarray, first: int, last: int) -> np.ndarray:
    """The starts of sentences or documents within a stretch; the beginning of the stretch is one of them."""
    low, high = np.searchsorted(starts, [first, last])
    return np.unique(np.append(np.asarray(starts[low:high], np.int64), first))


def _shifted(starts: list[np.ndarray], shifts: list[int]) -> list[np.ndarray]:
    return [each + shift for each, shift in zip(starts, shifts, strict=True)]
