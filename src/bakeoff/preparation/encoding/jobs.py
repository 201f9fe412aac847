"""Jobs of a text: its pieces in groups that are encoded in one go."""

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
    """Group pieces into jobs, up to the start of a document where one is near.

    Args:
        assigned: the pieces, with the split of the corpus that each belongs to.
        start: where they start.
        opened: documents before them.
        runs: whether any piece may be gone on from, not the starts of documents alone.
        ends: takes, for each job, the mark behind it, if one can go on there, and the documents before that.
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
