"""Right answers with their places in contexts."""

import re
from typing import NamedTuple
from unicodedata import is_normalized

from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.text.segmentation import whole_clusters
from bakeoff.tokenizer.offsets import cleaned


class GoldAnswer(NamedTuple):
    """A right answer, as a file has it."""

    text: str
    """The answer's text, as the file has it."""
    start: int | None
    """The index of its first character in the context; None: the answer does not stand in the context."""
    end: int | None
    """The index after its last character; None as for `start`."""
    moved: bool = False
    """Whether the file gives a start at which the answer does not stand."""
    widened: bool = False
    """Whether the answer begins or ends inside a grapheme cluster of the context; its place is then all of it."""


def placed(text: str, start: int | None, context: str, where: str) -> GoldAnswer:
    """An answer with its position in the context: at the given start, else the nearest to the start, or the first.

    A start of -1 means none: CMRC 2018 marks answers in this way that are not in their contexts. White space around an
    answer is no part of it, and white space within it stands for any white space. Where an answer does not stand
    letter by letter in its context, both are compared in NFC.

    Raises:
        UserError: the start is not within the context.
    """
    inner = text.strip()
    start = None if start == -1 else start
    if start is not None and not 0 <= start <= len(context):
        raise UserError(
            f"{where}: the answer starts at character {start} of a context of {len(context)}; mend it, or leave the "
            "start out to take the first place"
        )
    begin = None if start is None else start + text.index(inner)
    if begin is not None and context.startswith(inner, begin):
        return _widened(text, (begin, begin + len(inner)), context)
    spans = _places(inner, context)
    if not spans:
        return GoldAnswer(text, None, None)
    if begin is not None:
        nearest = min(spans, key=lambda span: abs(span[0] - begin))
        return _widened(text, nearest, context, moved=nearest[0] != begin)
    wide = whole_clusters(context, spans)
    return _widened(text, next((span for span in wide if span in spans), spans[0]), context)


def _places(inner: str, context: str) -> list[tuple[int, int]]:
    """The places of an answer in its context, in their order; in NFC where it does not stand there as it is."""
    # A lookahead, so that a match that overlaps the one before counts too.
    pattern = r"\s+".join(map(re.escape, inner.split()))
    spans = [match.span(1) for match in re.finditer(f"(?=({pattern}))", context)]
    if spans or (is_normalized("NFC", inner) and is_normalized("NFC", context)):
        return spans
    read = cleaned(context)
    matches = re.finditer(f"(?=({re.escape(clean(inner))}))", read.text)
    return [(int(read.begin[match.start(1)]), int(read.end[match.end(1) - 1])) for match in matches]


def _widened(text: str, span: tuple[int, int], context: str, moved: bool = False) -> GoldAnswer:
    """An answer at a place of its context, widened to whole grapheme clusters."""
    ((begin, end),) = whole_clusters(context, [span])
    return GoldAnswer(text, begin, end, moved, (begin, end) != span)
