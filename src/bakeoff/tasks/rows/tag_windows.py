"""Sentences as rows of tokens: the token by which each word is tagged, and windows over long sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat

UNSEEN = -1
"""The index of a tag that no example to learn from has."""


class TagTarget(NamedTuple):
    """The n words of a window that are tagged there, and their tags."""

    positions: NDArray[np.int64]
    """(n,) the position in the row of the token by which each word is tagged."""
    words: NDArray[np.int64]
    """(n,) the index of each word in its sentence."""
    tags: NDArray[np.int64] | None
    """(n,) the index of each word's tag in the list of tags, or `UNSEEN`; None where tags are not known."""


class TagWindows(NamedTuple):
    """The windows of sentences; N windows, each a row."""

    encoded: EncodedRows
    """The N rows."""
    owners: NDArray[np.int64]
    """(N,) the index of the sentence of each row, in rising order."""
    targets: list[TagTarget]
    """(N,) the tagged words of each row."""


def tag_windows(
    sentences: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str] | None],
    numbers: Mapping[str, int],
    format: InputFormat,
) -> TagWindows:
    """Windows over sentences; each word is tagged in one of them.

    A word is tagged by its first token (Devlin et al. 2019, section 5.3), or, in a model that reads forwards only, by
    its last token, the only one that has seen the whole word.

    Args:
        sentences: (S,) the words of each sentence.
        tags: (S,) the tags of the words of each sentence; None for a sentence without tags.
        numbers: the index of each tag in the list of tags.
        format: the format of the rows.
    """
    rows: list[NDArray[np.int64]] = []
    owners, targets = [], []
    encoded = format.tokenizer.encode_words(sentences, format.marks_begin_words)
    for owner, (sentence_tags, words) in enumerate(zip(tags, encoded, strict=True)):
        positions = words.last if format.reads_forwards else words.first
        for begin, end, indices in _windows(positions, len(words.ids), format.room):
            asked = None
            if sentence_tags is not None:
                asked = np.array([numbers.get(sentence_tags[word], UNSEEN) for word in indices], np.int64)
            rows.append(words.ids[begin:end])
            owners.append(owner)
            targets.append(TagTarget(positions[indices] - begin + format.before, indices, asked))
    return TagWindows(format.framed(rows), np.array(owners, np.int64), targets)


def _windows(positions: NDArray[np.int64], tokens: int, room: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Windows of at most `room` tokens over a sentence: the beginning, the end and the tagged words of each.

    Windows overlap by half, and each word is tagged in the window whose middle is nearest to its token.

    Args:
        positions: (words,) the position of the token by which each word is tagged.
        tokens: the number of tokens of the sentence.
        room: the most tokens of a window.
    """
    if tokens <= room:
        yield 0, tokens, np.arange(len(positions))
        return
    begins = [*range(0, tokens - room, max(1, room // 2)), tokens - room]
    middles = np.array(begins) + (room - 1) / 2
    nearest = np.abs(positions[:, None] - middles).argmin(1)
    for number, begin in enumerate(begins):
        indices = np.flatnonzero(nearest == number)
        if len(indices):
            yield begin, begin + room, indices
