"""The first reading of the text: a sample for the tokenizer, points for cuts, and the choice of held-out text."""

import heapq
import random
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bakeoff.preparation.planning.held_out import (
    FEWEST_DOCUMENTS,
    IDENTITY,
    Survey,
    close,
    identity,
    runs_hold,
    threshold,
)
from bakeoff.reading.pieces import BEGINNING, DOCUMENT, PARAGRAPH, TextPiece, TextPosition
from bakeoff.tokenizer.word_counts import WordCounts

SURVEYED_DOCUMENTS = 10_000
"""The largest number of documents among which the held-out documents are chosen by size, to meet the share asked for.
With more documents the hash alone decides on each, and chance evens out."""
LEAST_TO_CUT = 2_000
"""Number of characters to hold out, or leave, below which whole documents are held out however far from the share."""
LEAST_MISSED = 1_000
"""Deviation of runs of paragraphs from the size asked for, in characters, below which they are held out whatever the
ratio of both sizes."""
_MOST_CUTS = 1 << 14
_MOST_LENGTHS = 1 << 24


class Sample:
    """A uniform sample of at most `limit` UTF-8 bytes: the pieces with the smallest keyed random numbers."""

    def __init__(self, limit: int, seed: int, breaks: bool = False) -> None:
        """Sample up to `limit` bytes; the seed and a piece's number in the text alone decide on the piece.

        With `breaks` a later paragraph of a document begins with a line end, as where it is encoded.
        """
        self._limit, self._breaks = limit, breaks
        self._random = random.Random(seed)
        self._heap: list[tuple[float, int, bytes]] = []  # the largest number first
        self._count = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, text: str, later: bool = False) -> None:
        """Offer the next piece of the text; `later`: it is a later paragraph of its document."""
        priority = self._random.random()
        self._count += 1
        if self.bytes >= self._limit and -self._heap[0][0] <= priority:
            return
        data = ("\n" * (later and self._breaks) + text).encode()
        heapq.heappush(self._heap, (-priority, self._count, data))
        self.bytes += len(data)
        while self.bytes > self._limit and len(self._heap) > 1:
            self.bytes -= len(heapq.heappop(self._heap)[2])

    def shrink(self, limit: int) -> None:
        """Keep at most `limit` bytes."""
        self._limit = limit
        while self.bytes > limit and len(self._heap) > 1:
            self.bytes -= len(heapq.heappop(self._heap)[2])

    def clear(self) -> None:
        """Forget the sampled pieces, whose memory is needed for something else."""
        self._heap.clear()
        self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        """The sampled pieces in the order of the text."""
        for _, _, data in sorted(self._heap, key=lambda item: item[1]):
            yield data.decode()


class CutPoint(NamedTuple):
    """A point at which the text can be cut, with counts of the kept documents before it."""

    place: TextPosition
    """The document that starts here."""
    pieces: int
    """Number of pieces before the point."""
    characters: int
    """Number of characters before the point."""


class CutPoints:
    """Points at which the text can be cut, about evenly spaced by characters; their number is bounded."""

    def __init__(self) -> None:
        self._cuts: list[CutPoint] = []
        self._gap = 0

    def add(self, cut: CutPoint) -> None:
        """Offer the start of the next document."""
        if self._cuts and cut.characters < self._cuts[-1].characters + self._gap:
            return
        self._cuts.append(cut)
        if len(self._cuts) > _MOST_CUTS:
            self._cuts = self._cuts[::2]
            self._gap = 2 * cut.characters // _MOST_CUTS

    def divide(self, shards: int, characters: int) -> list[CutPoint]:
        """The start of each of `shards` shards of a text of `characters` characters; a short text has empty shards."""
        starts = [CutPoint(BEGINNING, 0, 0)]
        for shard in range(1, shards):
            i = bisect_left(self._cuts, characters * shard / shards, key=lambda cut: cut.characters)
            starts.append(max(starts[-1], self._cuts[min(i, len(self._cuts) - 1)]))
        return starts


def survey(
    pieces: Iterable[TextPiece],
    validation: float | None,
    seed: int,
    sample: Sample | WordCounts | None,
    cuts: CutPoints | None = None,
) -> Survey:
    """Read the text for the first time: to its end for a sample or cuts, else until enough documents are known.

    Args:
        pieces: the text.
        validation: share of the text to hold out, between 0 and 1; None: nothing.
        seed: key of the hashes that choose held-out documents.
        sample: takes all pieces; None: no sample is needed.
        cuts: takes the starts of all documents; None: no cuts are needed.
    """
    documents = characters = count = 0
    lengths: array[int] | None = array("I")
    known = Counter[int]()  # characters of the first documents, by hash; copies of a document count together
    opening: list[str] = []
    length = 0
    for piece in pieces:
        if piece.opens == DOCUMENT:
            if opening:
                known[identity(opening, seed)] += length
                opening, length = [], 0
            documents += 1
            if cuts is not None and piece.place is not None:
                cuts.add(CutPoint(piece.place, count, characters))
            elif documents > SURVEYED_DOCUMENTS and sample is None:
                break
        if documents <= SURVEYED_DOCUMENTS:
            if length < IDENTITY:
                opening.append(piece.text)
            length += len(piece.text)
        if lengths is not None:
            lengths.append(len(piece.text))
            if documents >= FEWEST_DOCUMENTS or len(lengths) > _MOST_LENGTHS:
                lengths = None  # of so many pieces a single one changes nothing
        count += 1
        characters += len(piece.text)
        if sample is not None:
            sample.add(piece.text, later=piece.opens == PARAGRAPH)
    if opening:
        known[identity(opening, seed)] += length
    if validation is None:
        return Survey(documents, count, characters, 0)
    complete = documents <= SURVEYED_DOCUMENTS
    below, held = threshold(sorted(known.items()), validation, complete)
    result = Survey(documents, count, characters, below)
    wanted = validation * characters
    if documents < FEWEST_DOCUMENTS:
        if lengths is None:
            return result
        held = runs_hold(result, np.array(lengths), validation, seed)
        small = abs(held - wanted) < LEAST_MISSED
    elif complete:
        small = min(wanted, characters - wanted) < LEAST_TO_CUT
    else:
        return result
    return result._replace(sentences=not close(held, wanted, characters) and (not small or held in (0, characters)))
