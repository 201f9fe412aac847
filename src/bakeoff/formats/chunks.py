"""The starts and ends of rows of whole sentences: all documents are walked through at once, chunk by chunk.

Shapes: S sentences, D documents, n chunks that are made together.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bakeoff.formats.cut_anew import Epoch
from bakeoff.randomness.draws import Draws

Integers = NDArray[np.int64]
Step = Callable[[Integers, Integers, Integers | int], tuple[Integers, Integers]]
"""A step from chunks to the next ones: from (n,) starts of chunks, (n,) ends that they may not pass, and (n,) or the
common largest number of their tokens, to (n,) ends of these chunks and (n,) starts of the next ones.
"""

STRETCH = 1 << 20
"""Number of tokens of the text that are walked through one chunk after the other; all such stretches are walked through
at once. Longer documents are cut where a sentence starts, so that there are always many stretches; as a result one
chunk in thousands is shorter.
"""


LONG = 64
"""Number of rows from which on a document may have one row more where its rows are cut anew."""
ATTEMPTS = 4
"""Number of times that another cut of a document is looked for, before it stays as it was."""

MEASURED = 1 << 18
"""Number of rows whose lengths are read for their mean. Of more rows a part is read, since reading all would take
seconds.
"""
MEASURED_TOGETHER = 1 << 8
"""Number of these rows in one run of neighbouring rows."""


def mean_length(size: int, lengths_of: Callable[[Integers], Integers]) -> float:
    """The mean of the lengths of `size` rows, or of a quarter of a million of them in runs at equal distances.

    Args:
        size: number of rows.
        lengths_of: a function from (n,) numbers of rows to (n,) lengths.
    """
    if size <= MEASURED:
        return float(lengths_of(np.arange(size)).mean()) if size else 0.0
    runs = MEASURED // MEASURED_TOGETHER
    starts = np.arange(runs) * (size - MEASURED_TOGETHER) // (runs - 1)
    return float(lengths_of((starts[:, None] + np.arange(MEASURED_TOGETHER)).ravel()).mean())


def sentence_chunks(
    sentences: Integers, documents: Integers, longest: int, short: float = 0.0, anew: Epoch | None = None
) -> tuple[Integers, Integers]:
    """Chunks of two whole sentences or more, each as long as fits.

    Sentences that cannot be part of such a chunk are left out: the only sentence of a document, a last sentence beside
    which no other one fits, and sentences that are too long.

    Args:
        sentences: (S + 1,) the starts of sentences, and the end of the text.
        documents: (D + 1,) the starts of documents, and the end of the text.
        longest: the largest number of tokens of a chunk.
        short: the share of chunks that are cut shorter, to a length drawn evenly.
        anew: the epoch for which they are cut anew, see `_cut`; None: as in the first.

    Returns:
        (n,) starts and (n,) ends of the chunks.
    """

    def step(first: Integers, end: Integers, most: Integers | int) -> tuple[Integers, Integers]:
        index = np.searchsorted(sentences, first)
        fitting = np.searchsorted(sentences, np.minimum(first + longest, end), side="right") - 1
        wish = np.minimum(_wished(first, longest, short), most)
        wished = np.searchsorted(sentences, first + wish, side="right") - 1
        last = np.minimum(np.maximum(wished, index + 2), fitting)  # the sentence after the chunk's last
        good = last - index >= 2
        return np.where(good, sentences[last], first), sentences[np.where(good, last, index + 1)]

    return _cut(*_stretches(sentences, documents), step, longest, anew)


def full_chunks(
    sentences: Integers, documents: Integers, longest: int, short: float = 0.0, anew: Epoch | None = None
) -> tuple[Integers, Integers]:
    """Chunks that fill their rows; one that ends inside a sentence is followed by one that starts with that.

    A sentence that is longer than a chunk is cut into pieces, and the last piece ends where the sentence does.

    Args:
        sentences: (S + 1,) the starts of sentences, and the end of the text.
        documents: (D + 1,) the starts of documents, and the end of the text.
        longest: the largest number of tokens of a chunk.
        short: the share of chunks that are cut shorter, to a length drawn evenly.
        anew: the epoch for which they are cut anew, see `_cut`; None: as in the first.

    Returns:
        (n,) starts and (n,) ends of the chunks; chunks of a single token, which cannot be cut in two, are left out.
    """

    def step(first: Integers, end: Integers, most: Integers | int) -> tuple[Integers, Integers]:
        last = np.minimum(first + np.minimum(_wished(first, longest, short), most), end)
        following = np.searchsorted(sentences, first, side="right")  # the sentence after the chunk's first
        inside = sentences[following - 1] < first
        last = np.where(inside, np.minimum(last, sentences[following]), last)
        cut = sentences[np.searchsorted(sentences, last, side="right") - 1]  # where the last, or the next, one starts
        return last, np.where((last < end) & ~inside & (cut > first), cut, last)

    return _cut(*_stretches(sentences, documents), step, longest, anew, shortest=2)


def sentence_pairs(
    sentences: Integers, documents: Integers, longest: int, anew: Epoch | None = None
) -> tuple[Integers, Integers]:
    """Chunks of two sentences; no sentence is in two chunks, and pairs that do not fit and odd ones are left out.

    Arguments and results are those of `sentence_chunks`. The odd sentence is the last one, or with `anew` at random the
    first one.
    """
    starts, ends = np.searchsorted(sentences, documents[:-1]), np.searchsorted(sentences, documents[1:])
    if anew is not None:
        starts = starts + anew.draws(documents[:-1], "pairs").integers("odd", np.where(ends - starts > 2, 2, 1))
    counts = (ends - starts) // 2
    before = np.cumsum(counts) - counts
    first = np.repeat(starts, counts) + 2 * (np.arange(counts.sum()) - np.repeat(before, counts))
    fits = sentences[first + 2] - sentences[first] <= longest
    return sentences[first[fits]], sentences[first[fits] + 2]


def packed_sentences(
    sentences: Integers, documents: Integers, longest: int, crossing: bool, anew: Epoch | None = None
) -> tuple[Integers, Integers]:
    """Chunks of as many whole sentences as fit, each sentence in one chunk; a sentence longer than a chunk is cut.

    Args:
        sentences: (S + 1,) the starts of sentences, and the end of the text.
        documents: (D + 1,) the starts of documents, and the end of the text.
        longest: the largest number of tokens of a chunk, including a separator before each further document that begins
            in it.
        crossing: chunks continue with the next document; False: they end where a document ends.
        anew: the epoch for which they are cut anew, see `_cut`; None: as in the first.

    Returns:
        (n,) starts and (n,) ends of the chunks.
    """
    starts, ends = _stretches(sentences, documents)
    if crossing:
        # Runs of stretches, so that the walk has several places to start from.
        number = ends // STRETCH
        new = np.pad(number[1:] != number[:-1], (1, 0), constant_values=True)
        starts, ends = starts[new], ends[np.pad(new[1:], (0, 1), constant_values=True)]
    stop_of = sentences[1:] + np.searchsorted(documents, sentences[1:])  # in a text with a mark before each document

    def step(first: Integers, end: Integers, most: Integers | int) -> tuple[Integers, Integers]:
        if anew is not None:  # a sentence that a row has room for is not cut
            whole = sentences[np.searchsorted(sentences, first, side="right")] - first
            most = np.minimum(np.maximum(most, whole), longest)
        reach = first + np.searchsorted(documents, first, side="right") + most
        count = np.searchsorted(stop_of, reach, side="right")  # sentences that end within reach
        last = np.minimum(sentences[count], end)
        last = np.where(last > first, last, np.minimum(first + longest, end))
        return last, last

    return _cut(starts, ends, step, longest, anew)


def _wished(first: Integers, longest: int, short: float) -> Integers | int:
    """(n,) the wanted lengths of chunks: BERT's short sequences, drawn from the chunks' starts once and for all."""
    if short == 0:
        return longest
    draws = Draws(0, np.zeros_like(first), first)
    length = 2 + draws.integers("short length", np.full(len(first), longest - 1))
    return np.where(draws.uniform("short", 1)[:, 0] < short, length, longest)


def _stretches(sentences: Integers, documents: Integers) -> tuple[Integers, Integers]:
    """The bounds of documents; a document longer than a stretch is divided."""
    cuts = [documents]
    for document in np.flatnonzero(np.diff(documents) > STRETCH):
        inner = np.arange(documents[document] + STRETCH, documents[document + 1], STRETCH)
        cuts.append(sentences[np.searchsorted(sentences, inner)])
    bounds = np.unique(np.concatenate(cuts))
    return bounds[:-1], bounds[1:]


def _cut(
    starts: Integers, ends: Integers, step: Step, longest: int, anew: Epoch | None, shortest: int = 1
) -> tuple[Integers, Integers]:
    """The chunks of stretches of text, in the order of the text, without those of fewer tokens than `shortest`.

    With `anew` the first chunk of a stretch is shorter by a random number of tokens, so that all others begin
    elsewhere, too. The room comes from what the last chunk had left free, or is any number of tokens where there are
    `LONG` chunks. A stretch that would have more chunks than without, or two more where these are `LONG`, stays as it
    was after some attempts.
    """
    usual = _walked(starts, ends, step, longest, longest, shortest)
    if anew is None or not len(starts):
        return usual
    before = _counts(usual[0], starts, ends)
    begun = np.append(usual[0], 0)[np.searchsorted(usual[0], ends) - 1]  # where the last chunk of each begins
    free = np.where(before >= LONG, longest - 1, np.clip(longest - (ends - begun), 0, longest - 1))
    parts, left = [], np.arange(len(starts))
    for attempt in range(ATTEMPTS):
        drawn = anew.draws(starts[left], f"first row {attempt}").integers("first row", free[left] + 1)
        first, last = _walked(starts[left], ends[left], step, longest - drawn, longest, shortest)
        after = _counts(first, starts[left], ends[left])
        other = _first_end(first, last, starts[left]) != _first_end(*usual, starts[left])
        turned = (after <= before[left] + (before[left] >= LONG)) & other
        which = turned[np.searchsorted(starts[left], first, side="right") - 1]
        parts.append((first[which], last[which]))
        left = left[~turned]
    stays = np.isin(np.searchsorted(starts, usual[0], side="right") - 1, left)
    parts.append((usual[0][stays], usual[1][stays]))
    return _in_order(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _counts(first: Integers, starts: Integers, ends: Integers) -> Integers:
    """The number of chunks, by where they begin, in each stretch."""
    return np.searchsorted(first, ends) - np.searchsorted(first, starts)


def _first_end(first: Integers, last: Integers, starts: Integers) -> Integers:
    """The end of the first chunk of each stretch, or of a later one where it has none."""
    found: Integers = np.append(last, -1)[np.searchsorted(first, starts)]
    return found


def _walked(
    starts: Integers, ends: Integers, step: Step, most: Integers | int, longest: int, shortest: int
) -> tuple[Integers, Integers]:
    """All chunks of stretches of text; the first one of each has `most` tokens, the others `longest`."""
    firsts, lasts = [], []
    while len(starts):
        last, following = step(starts, ends, most)
        most = longest
        firsts.append(starts)
        lasts.append(last)
        going = following < ends
        starts, ends = following[going], ends[going]
    first, last = (np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in (firsts, lasts))
    kept = last - first >= shortest
    return _in_order(first[kept], last[kept])


def _in_order(first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Chunks in the order of the text."""
    order = np.argsort(first, kind="stable")
    return first[order], last[order]
