"""Bounds checks of the numbers in a corpus's files, done once as long as the files do not change."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bakeoff.checksums import Damaged
from bakeoff.corpus.split import Split
from bakeoff.digests import checked_once

_AT_ONCE = 1 << 20
"""Number of array entries that are checked at a time."""


def check_bounds(file: Path, split: Split, vocabulary: int) -> None:
    """Check the bounds of all numbers of a split, unless the same files were checked before.

    Args:
        file: the corpus's folder and the split's name, the path of the split's files without their suffixes.
        split: the split's arrays.
        vocabulary: number of ids (V).

    Raises:
        Damaged: an id is V or more; sentences or documents do not ascend from 0 to the end of the text; a document does
            not start with a sentence; or the numbers of the originals skip one.
    """
    count = len(split.tokens)
    sentences = np.asarray(split.sentences)

    def ids() -> None:
        for chunk, _ in _chunks(split.tokens):
            if chunk.max() >= vocabulary:
                raise _damaged(file, "tokens", f"holds the id {chunk.max()}, there are {vocabulary}")

    def starts(kind: str, numbers: np.ndarray) -> None:
        if numbers[0] != 0 or numbers[-1] != count:
            raise _damaged(file, kind, f"goes from {numbers[0]} to {numbers[-1]} instead of from 0 to {count}")
        for chunk, following in _chunks(numbers):
            if (following <= chunk[: len(following)]).any():
                raise _damaged(file, kind, "does not ascend")

    def documents() -> None:
        starts("documents", split.documents)
        for chunk, _ in _chunks(split.documents):
            if not np.array_equal(sentences[np.searchsorted(sentences, chunk)], chunk):
                raise _damaged(file, "documents", "has a document that begins within a sentence")

    def originals() -> None:
        for chunk, following in _chunks(split.originals):
            steps = following - chunk[: len(following)]
            if chunk[0] < 0 or (steps < 0).any() or (steps > 1).any():
                raise _damaged(file, "originals", "does not ascend one by one")

    at = f"bounds {count} {vocabulary}"
    checked_once(Path(f"{file}.tokens"), at, ids)
    checked_once(Path(f"{file}.sentences"), at, lambda: starts("sentences", sentences))
    checked_once(Path(f"{file}.documents"), at, documents)
    checked_once(Path(f"{file}.originals"), at, originals)


def _chunks(numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of an array, each with the chunk that begins one entry later; at the end that one is one entry shorter."""
    for first in range(0, len(numbers), _AT_ONCE):
        yield numbers[first : first + _AT_ONCE], numbers[first + 1 : first + _AT_ONCE + 1]


def _damaged(file: Path, kind: str, problem: str) -> Damaged:
    return Damaged(f"{file}.{kind}: damaged: {problem}", "prepare the corpus again")
