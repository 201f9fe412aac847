"""Raw texts as words with tags, from spans that a file gives in characters of each text."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.tasks.reading.labels import label_text
from bakeoff.tasks.scores.spans import OUTSIDE, spans_of
from bakeoff.text.segmentation import whole_clusters, words_and_signs


class WordsOfText(NamedTuple):
    """A raw text as W words, each sign that is no part of one being a word."""

    words: tuple[str, ...]
    """(W,) the words in NFC."""
    offsets: tuple[tuple[int, int], ...]
    """(W,) the index of each word's first character in the raw text, and the index after its last."""
    tags: tuple[str, ...] | None = None
    """(W,) the BIO tag of each word; None where spans were not asked for."""
    widened: int = 0
    """The number of spans that began or ended inside a grapheme cluster, and were widened to all of it."""


class _Mark(NamedTuple):
    start: int
    end: int
    label: str


def words_of(text: str) -> WordsOfText:
    """The words of a raw text."""
    words = words_and_signs(text)
    offsets = tuple((begin, begin + len(word)) for word, begin in words)
    return WordsOfText(tuple(normalize("NFC", word) for word, _ in words), offsets)


def _problem_of_span(start: int, end: int, text: str) -> str | None:
    """The mistake in the places of a span, in words; None: there is none."""
    if not 0 <= start < end:
        return "begins before the text" if start < 0 else "ends where it begins, or before"
    if end > len(text):
        beyond = f"beyond the text's {counted(len(text), 'character')}"
        return f"begins at {start}, {beyond}" if start >= len(text) else f"ends at {end}, {beyond}"
    return None if text[start:end].strip() else "covers white space alone"


def tagged_words(text: str, spans: Any, where: str) -> WordsOfText:
    """The words of a raw text with their tags; words are cut where a span begins or ends inside of them.

    Args:
        text: the text.
        spans: a list of {start, end, label}, in characters of the text.
        where: the file, line and field of the spans, for errors.

    Raises:
        UserError: the spans are no such list, one is not within the text or has nothing in it that can be seen, or two
            overlap.
    """
    if not isinstance(spans, list):
        held = "null" if spans is None else type(spans).__name__
        raise UserError(f"{where} holds {held} instead of a list of spans")
    marks: list[_Mark] = []
    for span in spans:
        values = [span.get(key) for key in ("start", "end", "label")] if isinstance(span, dict) else [None] * 3
        start, end, label = values
        if not (type(start) is int and type(end) is int and isinstance(label, str) and label.strip()):
            raise UserError(f"{where}: a span is an object with start, end and label, not {str(span)[:80]}")
        if problem := _problem_of_span(start, end, text):
            raise UserError(f"{where}: the span {start}-{end} {problem}; mend it")
        marks.append(_Mark(start, end, label_text(label)))
    marks.sort()
    _require_apart(marks, marks, where, "overlap")
    whole = whole_clusters(text, [(mark.start, mark.end) for mark in marks])
    wide = [_Mark(begin, end, mark.label) for (begin, end), mark in zip(whole, marks, strict=True)]
    _require_apart(wide, marks, where, "share a letter with its marks")
    cuts = {bound for mark in wide for bound in (mark.start, mark.end)}
    words: list[str] = []
    offsets: list[tuple[int, int]] = []
    tags: list[str] = []
    before: _Mark | None = None  # the span that the word before is in
    reached: set[_Mark | None] = set()  # the spans that some word is in
    for word, begin in words_and_signs(text):
        inner = sorted(cut - begin for cut in cuts if begin < cut < begin + len(word))
        for first, last in pairwise([0, *inner, len(word)]):
            mark = next((mark for mark in wide if mark.start <= begin + first < mark.end), None)
            words.append(normalize("NFC", word[first:last]))
            offsets.append((begin + first, begin + last))
            tags.append(OUTSIDE if mark is None else f"{'I' if mark == before else 'B'}-{mark.label}")
            before = mark
            reached.add(mark)
    for mark, given in zip(wide, marks, strict=True):
        if mark not in reached:
            raise UserError(f"{where}: the span {given.start}-{given.end} covers invisible characters alone; mend it")
    widened = sum(one != other for one, other in zip(marks, wide, strict=True))
    return WordsOfText(tuple(words), tuple(offsets), tuple(tags), widened)


def _require_apart(wide: list[_Mark], marks: list[_Mark], where: str, what: str) -> None:
    """Refuse spans of which two overlap; `marks` has their places as the file gives them."""
    for (one, other), (mark, following) in zip(pairwise(wide), pairwise(marks), strict=True):
        if other.start < one.end:
            raise UserError(
                f"{where}: the spans {mark.start}-{mark.end} and {following.start}-{following.end} {what}; keep one "
                "of them"
            )


def remarks_on_widened(widened: Sequence[tuple[int, int]]) -> Iterator[str]:
    """A remark on spans that were widened, if any were, from the line and number of those of some texts."""
    if widened:
        yield (
            f"{counted(sum(count for _, count in widened), 'span')} began or ended between a letter and its marks, or "
            f"within an emoji, the first on line {widened[0][0]}: widened to the whole of it"
        )


def spans_in_text(tags: Sequence[str], offsets: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """The spans of W tags as {start, end, label}, in characters of the text whose W words stand at `offsets`."""
    return [
        {"start": offsets[span.first][0], "end": offsets[span.end - 1][1], "label": span.type}
        for span in spans_of(tags)
    ]
