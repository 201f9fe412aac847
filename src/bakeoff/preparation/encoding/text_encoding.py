"""Encoding of text: its pieces in groups, and the tokens, sentences and documents of each group.

Shapes: n tokens, s sentences and d documents of a split's share.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bakeoff.preparation.planning.sampling import CutPoint
from bakeoff.reading.pieces import BEGINNING, DOCUMENT, PARAGRAPH, STRETCH, TextPiece
from bakeoff.text.sentences import split_sentences
from bakeoff.text.word_order import NgramShuffle, shuffle_ngrams
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer

_JOB = 1 << 18  # characters

Ends = deque[tuple[CutPoint | None, int]]


class EncodingJob(NamedTuple):
    """Text to encode in one go."""

    first: int
    """Number of the first piece in the whole text."""
    pieces: list[tuple[int, TextPiece]]
    """Pieces in their order, each with its split (0 or 1)."""


class EncodedShare(NamedTuple):
    """One split's share of an encoded job."""

    ids: np.ndarray  # (n,) uint32
    starts: np.ndarray  # (n,) bool, whether each token starts a word
    lengths: np.ndarray  # (s,) int64, tokens of each sentence, none 0
    documents: np.ndarray  # (d,) int64, sentences before which a document opens; s: before the first of the next job
    size: int  # UTF-8 bytes of the text
    words: int  # words between white space, and ends of lines if they are tokens
    stretches: np.ndarray  # (d,) bool, whether each document is another stretch of the split's document before it
    hidden: HiddenText  # counts of unknown tokens, and of the characters that have no other token


def jobs_of(
    assigned: Iterable[tuple[int, TextPiece]], start: CutPoint, opened: int, runs: bool, ends: Ends
) -> Iterator[EncodingJob]:
    """Group pieces into jobs, which end before the start of a document if one is near.

    Args:
        assigned: the pieces, each with its split of the corpus.
        start: the point of the text at which the pieces start.
        opened: number of documents before the pieces.
        runs: whether encoding can continue from any piece, not only from the start of a document.
        ends: takes the end of each job: the point after it (None: encoding cannot continue there), and the number of
            documents before that point.
    """
    job = EncodingJob(start.pieces, [])
    length = 0
    for split, piece in assigned:
        if length >= _JOB and (piece.place is not None or runs or length >= 2 * _JOB):
            pieces = job.first + len(job.pieces)
            position = BEGINNING if runs else piece.place
            ends.append((None if position is None else CutPoint(position, pieces, 0), opened))
            yield job
            job, length = EncodingJob(pieces, []), 0
        opened += piece.opens in (DOCUMENT, STRETCH)
        job.pieces.append((split, piece))
        length += len(piece.text)
    if job.pieces:
        ends.append((None, opened))
        yield job


def encode_job(
    tokenizer: Tokenizer, job: EncodingJob, shuffle: NgramShuffle | None = None
) -> tuple[EncodedShare, EncodedShare]:
    """Split the pieces of a job into sentences, shuffle their words if `shuffle` is given, and encode split by split.

    Paragraphs within a document are joined by a line end, which opens the first sentence of the later paragraph. If the
    tokenizer has a token for the end of a line, each piece is a line and a sentence, and ends with that token.
    """
    sentences: tuple[list[str], list[str]] = ([], [])
    opened: tuple[list[int], list[int]] = ([], [])
    stretches: tuple[list[bool], list[bool]] = ([], [])
    texts = [piece.text for _, piece in job.pieces]
    if tokenizer.end_of_line is None:
        opens = [piece.opens == PARAGRAPH for _, piece in job.pieces]
        pieces = [split_sentences("\n" + text if later else text) for text, later in zip(texts, opens, strict=True)]
    else:
        pieces = [[text] for text in texts]
    if shuffle is not None:
        pieces = shuffle_ngrams(pieces, job.first, shuffle)
    for (split, piece), parts in zip(job.pieces, pieces, strict=True):
        if piece.opens in (DOCUMENT, STRETCH):
            opened[split].append(len(sentences[split]))
            stretches[split].append(piece.opens == STRETCH)
        sentences[split].extend(parts)
    first, second = (_encode(tokenizer, *parts) for parts in zip(sentences, opened, stretches, strict=True))
    return first, second


def _encode(tokenizer: Tokenizer, sentences: list[str], opened: list[int], stretches: list[bool]) -> EncodedShare:
    ids, starts, lengths, hidden = tokenizer.encode_joined(sentences)
    size = len("".join(sentences).encode())
    # Not the tokens that start a word: a token may hold several words.
    words = sum(len(text.split()) for text, length in zip(sentences, lengths.tolist(), strict=True) if length)
    if tokenizer.end_of_line is not None:
        ends = np.cumsum(lengths)
        ids, starts = np.insert(ids, ends, tokenizer.end_of_line), np.insert(starts, ends, True)
        lengths, size, words = lengths + 1, size + len(sentences), words + len(sentences)
    documents = np.array(opened, dtype=np.int64)
    kept = lengths > 0  # nothing is left of a sentence of control characters, for instance
    if not kept.all():
        documents = np.concatenate([[0], np.cumsum(kept)])[documents]
        lengths = lengths[kept]
    documents, first = np.unique(documents, return_index=True)
    # Where several documents open at one sentence, all but the last are empty, and the last is new if any of them is.
    new = np.logical_or.reduceat(~np.array(stretches, dtype=bool), first) if len(first) else np.zeros(0, dtype=bool)
    return EncodedShare(ids, starts, lengths, documents, size, words, ~new, hidden)
