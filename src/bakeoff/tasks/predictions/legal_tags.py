"""Sequences of tags in which each tag may follow the one before."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.display.wording import counted, verb
from bakeoff.errors import UserError
from bakeoff.tasks.scores.spans import OUTSIDE, are_spans, goes_on, have_types, may_follow, parted

NO_SPANS = (
    "the tags mark no spans, as those of BIO, IOB1, BIOES, BILOU and BMES do, with types (B-PER, I-PER) or without (B, "
    "I): words are scored one by one"
)
"""A remark on tags of another form."""
AS_CONLLEVAL = "spans are read as conlleval does, by which I- begins one where none is open"
"""The reading of tags that BIO does not have, in words."""
_SHOWN = 4  # kinds of places in a remark

Sentences = Iterable[tuple[int, Sequence[str]]]
"""Sentences as the line on which each ends, and its tags."""


def require_tags_of_spans(sentences: Sentences, known: Collection[str], origin: str) -> None:
    """Refuse a tag that marks neither a span nor the lack of one, among tags that do.

    Args:
        sentences: the sentences.
        known: the tags of the task, which mark spans.
        origin: the file, for the error.

    Raises:
        UserError: there is such a tag, probably a slip of the pen.
    """
    types = have_types(known)
    for line, tags in sentences:
        for tag in tags:
            prefix, type = parted(tag) or ("", "")
            if tag != OUTSIDE and not (prefix and bool(type) == types):
                raise UserError(
                    f"{origin}: the tag '{tag}' of the sentence that ends on line {line} is neither O nor B-, I-, E- "
                    f"or S- {'with a type' if types else 'alone'}, as others are; mend it"
                )


class LegalMoves:
    """The tags, out of C, that may begin a sentence, and the tags that may follow each tag.

    Moves that train has are legal, so that IOB1, in which I begins a span, can be predicted as well.

    Attributes:
        iob1: whether train is in IOB1: I begins spans, and B only those that follow another one of their type.
    """

    def __init__(self, tags: Sequence[str], seen: Iterable[tuple[str, str]]) -> None:
        """Take the tags, and the pairs that follow each other in train, with O before the first word of a sentence."""
        known = set(seen)
        prefixes = {prefix for prefix, _ in filter(None, map(parted, tags))}
        self._tags, self._closed = tags, bool(prefixes & {"E", "S"})
        unlike = any(_begins_anew(*move) for move in known)
        self.iob1 = prefixes <= {"B", "I"} and any(_begins_with_i(*move) for move in known) and not unlike

        def legal(before: str, tag: str) -> bool:
            return (before, tag) in known or may_follow(before, tag, self._closed)

        self._may_begin = np.array([legal(OUTSIDE, tag) for tag in tags])
        self._may_follow = np.array([[legal(before, tag) for tag in tags] for before in tags])

    def scheme(self, train: Sentences) -> Iterator[str]:
        """A remark on tags that are in IOB1, or mark no spans though some are O."""
        if not are_spans(self._tags):
            yield from [NO_SPANS] if OUTSIDE in self._tags else []
        elif self.iob1:
            occurrences = _Occurrences(train, _begins_with_i)
            yield (
                f"the tags of train are IOB1: I- begins a span at {counted(occurrences.number, 'place')} "
                f"({occurrences}), and B- one that follows another of its type; {AS_CONLLEVAL}, and the model learns "
                "IOB1"
            )

    def remarks(self, sentences: Sentences) -> Iterator[str]:
        """Remarks on tags of a split that stand where BIO or BIOES, or the IOB1 of train, does not have them."""
        scheme, reading = ("their scheme does" if self._closed else "BIO does"), AS_CONLLEVAL
        odd: Callable[[str, str], bool] = self._out_of_place
        if self.iob1:
            scheme, reading, odd = "IOB1, the scheme of train, does", "convert the files to one scheme", _begins_anew
        occurrences = _Occurrences(sentences, odd)
        if count := occurrences.number:
            yield (
                f"{counted(count, 'tag')} {verb(count, 'stands', 'stand')} where {scheme} not have "
                f"{verb(count, 'it', 'them')} ({occurrences}), the first in the sentence that ends on line "
                f"{occurrences.line}: {reading}"
            )

    def _out_of_place(self, before: str, tag: str) -> bool:
        return not may_follow(before, tag, self._closed)

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
        path = [int(best.argmax())]
        for word in range(len(table) - 1, 0, -1):
            path.append(int(back[word, path[-1]]))
        return np.array(path[::-1], np.int64)


class _Occurrences:
    """Places of tags in sentences, counted by the pairs of tags that stand there; as a text, the kinds of places.

    Args:
        sentences: the sentences.
        counts: a function that says whether a place counts, from the tag before, O at the beginning, and the tag.

    Attributes:
        number: the number of places.
        line: the line on which the sentence of the first one ends.
    """

    def __init__(self, sentences: Sentences, counts: Callable[[str, str], bool]) -> None:
        self._kinds: Counter[str] = Counter()
        self.line = 0
        for line, tags in sentences:
            for index, tag in enumerate(tags):
                if counts(tags[index - 1] if index else OUTSIDE, tag):
                    self.line = self.line or line
                    before = f"after {tags[index - 1]}" if index else "at the beginning of a sentence"
                    self._kinds[f"{tag} {before}"] += 1
        self.number = self._kinds.total()

    def __str__(self) -> str:
        shown = [f"{kind} {count:,}" for kind, count in self._kinds.most_common(_SHOWN)]
        more = len(self._kinds) - len(shown)
        return ", ".join(shown) + (f" and {counted(more, 'kind')} more" if more else "")


def _prefix(tag: str) -> str:
    return (parted(tag) or (OUTSIDE, ""))[0]


def _begins_with_i(before: str, tag: str) -> bool:
    """Whether I- begins a span, because none of its type is open."""
    return _prefix(tag) == "I" and not goes_on(before, tag)


def _begins_anew(before: str, tag: str) -> bool:
    """Whether B- begins a span where IOB1 has I-, because none of its type is open."""
    return _prefix(tag) == "B" and not goes_on(before, tag)
