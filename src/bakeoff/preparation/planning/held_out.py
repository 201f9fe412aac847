"""Choice of held-out text: whole documents, or runs of paragraphs or sentences if documents cannot give the share."""

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
"""Smallest number of held-out documents: objectives on texts from two documents are measured on them, too."""
FARTHEST = 1.5
"""The largest ratio, either way, of a split's size to the size asked for. If whole documents or paragraphs would exceed
it, runs of sentences are held out."""
IDENTITY = 1 << 16
"""Number of characters at the beginning of a document that identify it."""
_MOST_RUNS = 64
_RUN = 4_000  # characters of a run of sentences, about a page
_HASHES = 1 << 64

Assigned = Iterator[tuple[int, TextPiece]]


class Survey(NamedTuple):
    """Findings of the first reading, which may stop early in a text of more than `SURVEYED_DOCUMENTS` documents."""

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
    """Whether the sizes of both splits of a text, in characters, are close to those asked for, see `FARTHEST`."""
    sizes = ((held, wanted), (characters - held, characters - wanted))
    return all(wish / FARTHEST <= size <= wish * FARTHEST for size, wish in sizes)


def threshold(known: list[tuple[int, int]], validation: float, complete: bool) -> tuple[int, int]:
    """The hash below which documents are held out, and the number of characters held out of the known documents.

    Args:
        known: hash and number of characters of the first documents, in rising order of the hash.
        validation: share of the text to hold out.
        complete: whether these are all documents.
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
    pieces: Iterable[TextPiece], survey: Survey, validation: float | None, seed: int, lines: bool = False
) -> Assigned:
    """Assign each piece to training or held-out text; after each cut a document, or a stretch of one, opens.

    Args:
        pieces: the text, the same as in the survey.
        survey: the survey of the text.
        validation: share of the text to hold out, between 0 and 1; None: nothing.
        seed: the same as in the survey.
        lines: whether each piece is a line, which is a sentence.

    Yields:
        TRAIN or VALIDATION, and the piece, which is cut into several if runs of sentences are held out.
    """
    if validation is None:
        return ((TRAIN, piece) for piece in pieces)
    if survey.sentences:
        return _opened(_by_sentence(pieces, _pages(survey, validation, seed), lines))
    if survey.documents < FEWEST_DOCUMENTS:
        return _opened(_by_run(pieces, _windows(survey, validation, seed)))
    return _by_document(pieces, lambda opening: identity(opening, seed) < survey.threshold)


def identity(opening: list[str], seed: int) -> int:
    """Keyed hash of the text of a document, or of the beginning of a very long one; copies of a document share it."""
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


def _windows(survey: Survey, validation: float, seed: int) -> list[tuple[float, float]]:
    """Windows of text to hold out, in characters: one at a random position in each of several equal stretches."""
    average = survey.characters / max(survey.pieces, 1)
    runs = max(1, min(_MOST_RUNS, int(validation * survey.characters / (4 * average)) if average else 1))
    return _placed(survey, validation, seed, runs)


def _pages(survey: Survey, validation: float, seed: int) -> list[tuple[float, float]]:
    """Windows for runs of sentences; at least two if there are two documents, since some objectives pair documents."""
    smaller = min(validation, 1 - validation) * survey.characters
    return _placed(survey, validation, seed, min(_MOST_RUNS, max(min(2, survey.documents), int(smaller / _RUN))))


def _placed(survey: Survey, validation: float, seed: int, runs: int) -> list[tuple[float, float]]:
    stretch = survey.characters / runs
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


def runs_hold(survey: Survey, lengths: NDArray[Any], validation: float, seed: int) -> int:
    """The number of characters that runs of paragraphs would hold out of pieces with these (n,) lengths."""
    starts, ends = np.array(_windows(survey, validation, seed)).T
    last = np.cumsum(lengths, dtype=np.int64)
    first = last - lengths
    touched = np.searchsorted(starts, last) > np.searchsorted(starts, first)
    i = np.searchsorted(starts, first, side="right") - 1
    inside = (i >= 0) & ((first + last) / 2 < ends[i])
    return int(lengths[touched | inside].sum())


def _by_sentence(pieces: Iterable[TextPiece], windows: list[tuple[float, float]], lines: bool) -> Assigned:
    """Assign pieces, cut between sentences.

    A sentence is held out if half of it, or half of a window shorter than it, lies in a window. So each window holds
    out at least one sentence, and on average as many characters as the window has. A sentence that continues in the
    next piece stays in its split there, unless that piece holds no end of a sentence.
    """
    ends = [end for _, end in windows]
    first, before = 0, TRAIN
    for piece in pieces:
        runs: list[tuple[int, list[str]]] = []
        piece_sentences = [piece.text] if lines else split_sentences(piece.text)
        goes_on = piece.opens == CONTINUATION and len(piece_sentences) > 1
        for sentence in piece_sentences:
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
    """Let each cut open a document, or a stretch if the split saw the same document last."""
    before: int | None = None
    document = 0
    latest = [0, 0]  # the document that each split saw last
    for split, piece in assigned:
        document += piece.opens == DOCUMENT
        if split != before:
            piece = piece._replace(opens=DOCUMENT if latest[split] != document else STRETCH)
        yield split, piece
        before, latest[split] = split, document
