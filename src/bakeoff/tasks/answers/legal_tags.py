"""Sequences of tags in which each tag may follow the one before."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.scores.spans import OUTSIDE, may_follow, parted

AS_CONLLEVAL = "they are read as conlleval does, by which I- begins a span where none is open"
"""The reading of tags that BIO does not have, in words."""


class LegalMoves:
    """The tags, out of C, that may begin a sentence, and the tags that may follow each tag.

    Moves that train has are legal, so that IOB1, in which I begins a span, can be predicted as well.

    Attributes:
        odd: pairs of tags of spans that follow each other in train, but not in BIO.
    """

    def __init__(self, tags: Sequence[str], seen: Iterable[tuple[str, str]]) -> None:
        """Take the tags, and the pairs that follow each other in train, with O before the first word of a sentence."""
        known = set(seen)
        closed = any((parted(tag) or ("", ""))[0] in ("E", "S") for tag in tags)

        def legal(before: str, tag: str) -> bool:
            return (before, tag) in known or may_follow(before, tag, closed)

        self._may_begin = np.array([legal(OUTSIDE, tag) for tag in tags])
        self._may_follow = np.array([[legal(before, tag) for tag in tags] for before in tags])
        self.odd = sorted(move for move in known if not may_follow(*move, closed))
        self._legal = legal

    def remarks(self, sentences: Iterable[tuple[int, Sequence[str]]]) -> Iterator[str]:
        """Remarks on tags that follow each other neither in BIO nor in train.

        Args:
            sentences: the line on which each sentence ends, and its tags.
        """
        odd = [
            (line, before, tag)
            for line, tags in sentences
            for before, tag in pairwise((OUTSIDE, *tags))
            if not self._legal(before, tag)
        ]
        if odd:
            line, before, tag = odd[0]
            yield (
                f"{len(odd)} tags stand where BIO does not have them, such as {tag} behind {before} in the sentence "
                f"that ends on line {line}: {AS_CONLLEVAL}"
            )

    def likeliest(self, table: NDArray[np.float32]) -> NDArray[np.int64]:
        """(n,) the most probable legal sequence of tags, from (n, C) log-probabilities (Viterbi 1967)."""
        if not len(table):
            return np.zeros(0, np.int64)
        barrier = np.where(self._may_follow, 0.0, -np.inf)
        best = np.where(self._may_begin, table[0].astype(np.float64), -np.inf)
        back = np.zeros(table.shape, np.int64)
        for word in range(1, len(table)):
            paths = best[:, None] + barrier
            back[word] = paths.argmax(0)
            best = paths.max(0) + table[word]
        places = [int(best.argmax())]
        for word in range(len(table) - 1, 0, -1):
            places.append(int(back[word, places[-1]]))
        return np.array(places[::-1], np.int64)
