"""Sentences as rows of tokens: the token by which each word is tagged, and windows over long sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat


class TagTarget(NamedTuple):
    """What is asked for in a window; n of its words."""

    places: NDArray[np.int64]
    """(n,) the place in the row of the token by which each word is tagged."""
    words: NDArray[np.int64]
    """(n,) the place of each in its sentence."""
    tags: NDArray[np.int64] | None
    """(n,) their tags' places in the list."""


class TagWindows(NamedTuple):
    """The windows of some sentences; N rows."""

    encoded: EncodedRows
    """N rows."""
    owners: NDArray[np.int64]
    """(N,) the sentence of each, in rising order."""
    targets: list[TagTarget]
    """(N,) what is asked for."""


def tag_windows(
    sentences: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str] | None],
    numbers: Mapping[str, int],
    format: InputFormat,
) -> TagWindows:
    """Sentences in windows of a row, each word tagged in one of them.

    A word is tagged by its first token (Devlin et al. 2019, section 5.3), or, in a model that reads forwards only, by
    its last, before which the rest of the word is unknown.

    Args:
        sentences: (S,) their words.
        tags: (S,) the tag of each word, None of a sentence that has none.
        numbers: the place of each tag in the list.
        format: the rows' format.
    """
    rows: list[NDArray[np.int64]] = []
    owners, targets = [], []
    encoded = format.tokenizer.encode_words(sentences)
    for owner, (given, words) in enumerate(zip(tags, encoded, strict=True)):
        place = words.last if format.reads_forwards else words.first
        for begin, end, own in _windows(place, len(words.ids), format.room):
            asked = None if given is None else np.array([numbers[given[word]] for word in own], np.int64)
            rows.append(words.ids[begin:end])
            owners.append(owner)
            targets.append(TagTarget(place[own] - begin + format.before, own, asked))
    return TagWindows(format.framed(rows), np.array(owners, np.int64), targets)


def _windows(place: NDArray[np.int64], tokens: int, room: int) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Windows of at most `room` tokens over a sentence: where each begins and ends, and the words that it tags.

    They overlap by half, and each word is tagged in the one whose middle is nearest to its token.
    """
    if tokens <= room:
        yield 0, tokens, np.arange(len(place))
        return
    begins = [*range(0, tokens - room, max(1, room // 2)), tokens - room]
    middles = np.array(begins) + (room - 1) / 2
    nearest = np.abs(place[:, None] - middles).argmin(1)
    for number, begin in enumerate(begins):
        own = np.flatnonzero(nearest == number)
        if len(own):
            yield begin, begin + room, own
