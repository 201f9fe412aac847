"""Which text is held out: whole documents, or runs of paragraphs or sentences where these cannot give the share."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.reading.pieces import CONTINUATION, DOCUMENT, STRETCH, TextPiece
from bakeoff.text.sentences import split_sentences

TRAIN, VALIDATION = 0, 1
FEWEST_DOCUMENTS = 200
"""With fewer documents, runs of paragraphs are held out instead of whole documents."""
FEWEST_HELD_OUT = 2
"""Documents that are held out at least: pairs of text from two documents are measured on them too."""
FARTHEST = 1.5
"""The largest ratio, either way, of the size of a held-out split to the size asked for. Where documents or paragraphs
would miss it, sentences are held out."""
IDENTITY = 1 << 16
"""Characters from the beginning of a document that stand for it."""
_MOST_RUNS = 64
_RUN = 4_000  # characters of a run of sentences, about a page
_HASHES = 1 << 64

Assigned = Iterator[tuple[int, TextPiece]]


class Survey(NamedTuple):
    """What the first look has found. Complete where there are no more documents than the look takes in one by one."""

    documents: int
    pieces: int
    characters: int
    threshold: int  # documents whose hash is smaller are held out
    sentences: bool = False  # runs of sentences are held out, from within documents

    @property
    def runs(self) -> bool:
        """Whether runs of paragraphs or sentences are held out, instead of whole documents."""
        return self.sentences or self.documents < FEWEST_DOCUMENTS


def close(held: int, wanted: float, characters: int) -> bool:
    """Whether both splits of a text of so many characters come near to the sizes that were asked for."""
    sizes = ((held, wanted), (characters - held, characters - wanted))
    return all(wish / FARTHEST <= size <= wish * FARTHEST for size, wish in sizes)


def threshold(known: list[tuple[int, int]], validation: float, complete: bool) -> tuple[int, int]:
    """The hash below which documents are held out, and how many characters of these that are.

    Args:
        known: the first documents, smallest hash first: hashes, and their characters.
        validation: share of the text to hold out.
        complete: there are no others.
    """
    if not complete:
        below = max(int(validation * _HASHES), known[:FEWEST_HELD_OUT][-1][0] + 1)
        return below, sum(size for digest, size in known if digest < below)
    wanted = validation * sum(size for _, size in known)
    held = 0
    for count, (digest, size) in enumerate(known):
        nearer_without = held + size - wanted > wanted - held
        if count >= FEWEST_HELD_OUT and (held >= wanted or nearer_without):
            return digest, held
        held += size
    return _HASHES, held


def assign(
    pieces: Iterable[TextPiece], found: Survey, validation: float | None, seed: int, lines: bool = False
) -> Assigned:
    """Decide for each piece whether it is trained on or held out; behind each cut a document or a stretch of one opens.

    Args:
        pieces: the text, as it was surveyed.
        found: the survey.
        validation: share of the text to hold out, between 0 and 1; None: nothing.
        seed: the same as in the survey.
        lines: each piece is a line, and a sentence.

    Yields:
        TRAIN or VALIDATION, and the piece; in several, where runs of sentences are held out.
    """
    if validation is None:
        return ((TRAIN, piece) for piece in pieces)
    if found.sentences:
        return _opened(_by_sentence(pieces, _pages(found, validation, seed), lines))
    if found.documents < FEWEST_DOCUMENTS:
        return _opened(_by_run(pieces, _windows(found, validation, seed)))
    return _by_document(pieces, lambda opening: identity(opening, seed) < found.threshold)


def identity(opening: list[str], seed: int) -> int:
    """Keyed hash of a document's text; of very long ones the beginning counts. Copies of a document share it."""
    key = (seed % _HASHES).to_bytes(8, "little")
    return int.from_bytes(blake2b("\n".join(opening).encode(), digest_size=8, key=key).digest(), "little")


def _by_document(pieces: Iterable[TextPiece], held_out: Callable[[list[str]], bool]) -> Assigned:
    waiting: list[TextPiece] = []
    length = 0
    split: int | None = None
    for piece in pieces:
        if piece.opens == DOCUMENT:
            if waiting:
                split = int(held_out([one.text for one in waiting]))
                yield from ((split, one) for one in waiting)
            waiting, length, split = [], 0, None
        if split is not None:
            yield split, piece
            continue
        waiting.append(piece)
        length += len(piece.text)
        if length >= IDENTITY:
            split = int(held_out([one.text for one in waiting]))
            yield from ((split, one) for one in waiting)
            waiting = []
    if waiting:
        split = int(held_out([one.text for one in waiting]))
        yield from ((split, one) for one in waiting)


def _windows(found: Survey, validation: float, seed: int) -> list[tuple[float, float]]:
    """Stretches of the text, by characters, to hold out: one at a random place of each of several equal stretches."""
    average = found.characters / max(found.pieces, 1)
    runs = max(1, min(_MOST_RUNS, int(validation * found.characters / (4 * average)) if average else 1))
    return _placed(found, validation, seed, runs)


def _pages(found: Survey, validation: float, seed: int) -> list[tuple[float, float]]:
    """Likewise for runs of sentences, in two documents at least if there are two, as pairs of text need."""
    smaller = min(validation, 1 - validation) * found.characters
    return _placed(found, validation, seed, min(_MOST_RUNS, max(min(2, found.documents), int(smaller / _RUN))))


def _placed(found: Survey, validation: float, seed: int, runs: int) -> list[tuple[float, float]]:
    stretch = found.characters / runs
    generator = random.Random(seed)
    starts = [stretch * (i + generator.random() * (1 - validation)) for i in range(runs)]
    return [(start, start + stretch * validation) for start in starts]


def _by_run(pieces: Iterable[TextPiece], windows: list[tuple[float, float]]) -> Assigned:
    starts = [start for start, _ in windows]
    first = 0
    for piece in pieces:
        last = first + len(piece.text)
        touched = bisect_left(starts, last) > bisect_left(starts, first)  # a window begins in this piece
        i = bisect_right(starts, first) - 1
        inside = i >= 0 and (first + last) / 2 < windows[i][1]
        yield VALIDATION if touched or inside else TRAIN, piece
        first = last


def runs_hold(found: Survey, lengths: NDArray[Any], validation: float, seed: int) -> int:
    """Characters of the runs of paragraphs that would be held out of pieces of these lengths, (n,)."""
    starts, ends = np.array(_windows(found, validation, seed)).T
    last = np.cumsum(lengths, dtype=np.int64)
    first = last - lengths
    touched = np.searchsorted(starts, last) > np.searchsorted(starts, first)
    i = np.searchsorted(starts, first, side="right") - 1
    inside = (i >= 0) & ((first + last) / 2 < ends[i])
    return int(lengths[touched | inside].sum())


def _by_sentence(pieces: Iterable[TextPiece], windows: list[tuple[float, float]], lines: bool) -> Assigned:
    """Pieces cut between sentences.

    A sentence is held out where half of it, or half of a window that is shorter, lies in a window: each window then
    has one at least, and on average as many characters as it is long. A sentence that goes on in the next piece stays
    in its split there, unless that piece holds no end of a sentence.
    """
    ends = [end for _, end in windows]
    first, before = 0, TRAIN
    for piece in pieces:
        runs: list[tuple[int, list[str]]] = []
        found = [piece.text] if lines else split_sentences(piece.text)
        goes_on = piece.opens == CONTINUATION and len(found) > 1
        for sentence in found:
            last = first + len(sentence)
            i = bisect_right(ends, first)  # the first window that is not over
            held = False
            while i < len(windows) and windows[i][0] < last:
                start, end = windows[i]
                held |= min(last, end) - max(first, start) >= min(last - first, end - start) / 2
                i += 1
            split = before if goes_on and not runs else int(held)
            if not runs or runs[-1][0] != split:
                runs.append((split, []))
            runs[-1][1].append(sentence)
            first = last
        for number, (split, sentences) in enumerate(runs):
            text = "".join(sentences)
            yield split, piece._replace(text=text) if number == 0 else TextPiece(STRETCH, text.lstrip())
            before = split


def _opened(assigned: Assigned) -> Assigned:
    """Behind each cut a document opens, or a stretch of the one that its split saw last."""
    before: int | None = None
    document = 0
    latest = [0, 0]  # the document that each split saw last
    for split, piece in assigned:
        document += piece.opens == DOCUMENT
        if split != before:
            piece = piece._replace(opens=DOCUMENT if latest[split] != document else STRETCH)
        yield split, piece
        before, latest[split] = split, document
