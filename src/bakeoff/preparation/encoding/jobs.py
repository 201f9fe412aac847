"""Jobs of encoding: the pieces of a text in groups that are encoded in one go."""

from collections import deque
from collections.abc import Iterable, Iterator

from bakeoff.preparation.encoding.worker import EncodingJob
from bakeoff.preparation.planning.sampling import CutPoint
from bakeoff.reading.pieces import BEGINNING, DOCUMENT, STRETCH, TextPiece

_JOB = 1 << 18  # characters

Ends = deque[tuple[CutPoint | None, int]]


def jobs_of(
    assigned: Iterable[tuple[int, TextPiece]], start: CutPoint, opened: int, runs: bool, ends: Ends
) -> Iterator[EncodingJob]:
    """Group pieces into jobs, which end before the start of a document if one is near.

    Args:
        assigned: the pieces, each with its split of the corpus.
        start: the point of the text at which the pieces start.
        opened: number of documents before the pieces.
        runs: whether encoding can continue from any piece, not only from the start of a document.
        ends: takes the end of each job: the point behind it (None: encoding cannot continue there), and the number of
            documents before that point.
    """
    job = EncodingJob(start.pieces, [])
    length = 0
    for split, piece in assigned:
        if length >= _JOB and (piece.place is not None or runs or length >= 2 * _JOB):
            pieces = job.first + len(job.pieces)
            place = BEGINNING if runs else piece.place
            ends.append((None if place is None else CutPoint(place, pieces, 0), opened))
            yield job
            job, length = EncodingJob(pieces, []), 0
        opened += piece.opens in (DOCUMENT, STRETCH)
        job.pieces.append((split, piece))
        length += len(piece.text)
    if job.pieces:
        ends.append((None, opened))
        yield job
