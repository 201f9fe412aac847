"""A first look at the text: a sample for the tokenizer, and what decides which text is held out."""

import heapq
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from bakeoff.corpus.sources import BEGINNING, DOCUMENT, STRETCH, Piece, Place
from bakeoff.corpus.word_counts import WordCounts

TRAIN, VALIDATION = 0, 1
FEWEST_DOCUMENTS = 200
"""With fewer documents, runs of paragraphs are held out instead of whole documents."""
SURVEYED_DOCUMENTS = 10_000
"""Up to so many documents are chosen by what they hold, so that the share that is held out is the one asked for. Of
more, each is held out or not by itself, and chance evens out."""
FEWEST_HELD_OUT = 2
"""Documents that are held out at least: pairs of text from two documents are measured on them too."""
_IDENTITY = 1 << 16  # characters from the beginning of a document that stand for it
_MOST_RUNS = 64
_MOST_MARKS = 1 << 14
_HASHES = 1 << 64

Assigned = Iterator[tuple[int, Piece]]


class Sample:
    """A uniform sample of pieces with at most `limit` UTF-8 bytes: those whose keyed random numbers are smallest."""

    def __init__(self, limit: int, seed: int) -> None:
        """Sample up to `limit` bytes; the seed alone decides which pieces, by their position in the text."""
        self._limit = limit
        self._random = random.Random(seed)
        self._heap: list[tuple[float, int, bytes]] = []  # the largest number first
        self._count = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, text: str) -> None:
        """Offer the next piece of the text."""
        priority = self._random.random()
        self._count += 1
        if self.bytes >= self._limit and -self._heap[0][0] <= priority:
            return
        data = text.encode()
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
        """Free the memory."""
        self._heap.clear()
        self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        """The sampled pieces in the order of the text."""
        for _, _, data in sorted(self._heap, key=lambda item: item[1]):
            yield data.decode()


class Survey(NamedTuple):
    """What the first look has found. Complete where there are no more than `SURVEYED_DOCUMENTS` documents."""

    documents: int
    pieces: int
    characters: int
    threshold: int  # documents whose hash is smaller are held out


class Mark(NamedTuple):
    """A place in the text at which it can be cut, with what the kept documents before it hold."""

    place: Place
    """Where."""
    pieces: int
    """Pieces before it."""
    characters: int
    """Characters before it."""


class Cuts:
    """Marks all over the text, within a bounded memory, with about as many characters between two."""

    def __init__(self) -> None:
        """Begin without marks."""
        self._marks: list[Mark] = []
        self._gap = 0

    def add(self, mark: Mark) -> None:
        """Offer the start of the next document."""
        if self._marks and mark.characters < self._marks[-1].characters + self._gap:
            return
        self._marks.append(mark)
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[::2]
            self._gap = 2 * mark.characters // _MOST_MARKS

    def divide(self, parts: int, characters: int) -> list[Mark]:
        """Where each of so many parts of a text of so many characters starts; some are empty where it is short."""
        starts = [Mark(BEGINNING, 0, 0)]
        for part in range(1, parts):
            i = bisect_left(self._marks, characters * part / parts, key=lambda mark: mark.characters)
            starts.append(max(starts[-1], self._marks[min(i, len(self._marks) - 1)]))
        return starts


def survey(
    pieces: Iterable[Piece],
    validation: float | None,
    seed: int,
    sample: Sample | WordCounts | None,
    cuts: Cuts | None = None,
) -> Survey:
    """Read the text for the first time: all of it for a sample or cuts, else until enough documents are known.

    Args:
        pieces: the text.
        validation: share of the text to hold out, between 0 and 1; None: nothing.
        seed: key of the hashes that choose held-out documents.
        sample: takes all pieces.
        cuts: takes all places of documents.
    """
    documents = characters = count = 0
    known = Counter[int]()  # by the hashes of the first documents their characters, those of copies together
    opening: list[str] = []
    length = 0
    for piece in pieces:
        if piece.opens == DOCUMENT:
            if opening:
                known[_identity(opening, seed)] += length
                opening, length = [], 0
            documents += 1
            if cuts is not None and piece.place is not None:
                cuts.add(Mark(piece.place, count, characters))
            elif documents > SURVEYED_DOCUMENTS and sample is None:
                break
        if documents <= SURVEYED_DOCUMENTS:
            if length < _IDENTITY:
                opening.append(piece.text)
            length += len(piece.text)
        count += 1
        characters += len(piece.text)
        if sample is not None:
            sample.add(piece.text)
    if opening:
        known[_identity(opening, seed)] += length
    complete = documents <= SURVEYED_DOCUMENTS
    threshold = 0 if validation is None else _threshold(sorted(known.items()), validation, complete)
    return Survey(documents, count, characters, threshold)


def _threshold(known: list[tuple[int, int]], validation: float, complete: bool) -> int:
    """The hash below which documents are held out.

    Args:
        known: the first documents, smallest hash first: hashes, and their characters.
        validation: share of the text to hold out.
        complete: there are no others.
    """
    if not complete:
        return max(int(validation * _HASHES), known[:FEWEST_HELD_OUT][-1][0] + 1)
    wanted = validation * sum(size for _, size in known)
    held = 0
    for count, (identity, size) in enumerate(known):
        nearer_without = held + size - wanted > wanted - held
        if count >= FEWEST_HELD_OUT and (held >= wanted or nearer_without):
            return identity
        held += size
    return _HASHES


def assign(pieces: Iterable[Piece], found: Survey, validation: float | None, seed: int) -> Assigned:
    """Decide for each piece whether it is trained on or held out; behind each cut a document or a stretch of one opens.

    Args:
        pieces: the text, as it was surveyed.
        found: the survey.
        validation: share of the text to hold out, between 0 and 1; None: nothing.
        seed: the same as in the survey.

    Yields:
        TRAIN or VALIDATION, and the piece.
    """
    if validation is None:
        return ((TRAIN, piece) for piece in pieces)
    if found.documents < FEWEST_DOCUMENTS:
        return _by_run(pieces, _windows(found, validation, seed))
    return _by_document(pieces, lambda opening: _identity(opening, seed) < found.threshold)


def _identity(opening: list[str], seed: int) -> int:
    """Keyed hash of a document's text; of very long ones the beginning counts. Copies of a document share it."""
    key = (seed % _HASHES).to_bytes(8, "little")
    return int.from_bytes(blake2b("\n".join(opening).encode(), digest_size=8, key=key).digest(), "little")


def _by_document(pieces: Iterable[Piece], held_out: Callable[[list[str]], bool]) -> Assigned:
    waiting: list[Piece] = []
    length = 0
    part: int | None = None
    for piece in pieces:
        if piece.opens == DOCUMENT:
            if waiting:
                part = int(held_out([one.text for one in waiting]))
                yield from ((part, one) for one in waiting)
            waiting, length, part = [], 0, None
        if part is not None:
            yield part, piece
            continue
        waiting.append(piece)
        length += len(piece.text)
        if length >= _IDENTITY:
            part = int(held_out([one.text for one in waiting]))
            yield from ((part, one) for one in waiting)
            waiting = []
    if waiting:
        part = int(held_out([one.text for one in waiting]))
        yield from ((part, one) for one in waiting)


def _windows(found: Survey, validation: float, seed: int) -> list[tuple[float, float]]:
    """Stretches of the text, by characters, to hold out: one at a random place of each of several equal parts."""
    average = found.characters / max(found.pieces, 1)
    runs = max(1, min(_MOST_RUNS, int(validation * found.characters / (4 * average)) if average else 1))
    part = found.characters / runs
    generator = random.Random(seed)
    starts = [part * (i + generator.random() * (1 - validation)) for i in range(runs)]
    return [(start, start + part * validation) for start in starts]


def _by_run(pieces: Iterable[Piece], windows: list[tuple[float, float]]) -> Assigned:
    starts = [start for start, _ in windows]
    first = 0
    before: int | None = None
    document = 0
    latest = [0, 0]  # the document that each part saw last
    for piece in pieces:
        document += piece.opens == DOCUMENT
        last = first + len(piece.text)
        touched = bisect_left(starts, last) > bisect_left(starts, first)  # a window begins in this piece
        i = bisect_right(starts, first) - 1
        inside = i >= 0 and (first + last) / 2 < windows[i][1]
        part = VALIDATION if touched or inside else TRAIN
        if part != before:
            piece = piece._replace(opens=DOCUMENT if latest[part] != document else STRETCH)
        yield part, piece
        before, latest[part] = part, document
        first = last
