"""Documents as a stream of pieces of text, and the place of each in the files."""

from typing import NamedTuple

CONTINUATION, PARAGRAPH, DOCUMENT, STRETCH = 0, 1, 2, 3


class TextPosition(NamedTuple):
    """The start of a document in the text, from which reading can begin."""

    file: int
    """Number of the document's file."""
    record: int
    """Documents of the file before it, empty ones among them."""
    document: int
    """Documents of the text before it, without empty ones; from the start of the reading where that is not known."""
    empty: int
    """Empty documents before it, counted likewise."""


BEGINNING = TextPosition(0, 0, 0, 0)
"""The place of the first document."""


class TextPiece(NamedTuple):
    """A paragraph, or a part of a long one."""

    opens: int
    """DOCUMENT: opens a document (and a paragraph); PARAGRAPH; CONTINUATION of the paragraph before; or STRETCH: goes
    on behind a cut, where text is held out."""
    text: str
    """NFC text; runs of whitespace are one space. A continuation starts with a space if the paragraph has one there."""
    place: TextPosition | None = None
    """The start of the document, in the first piece of each document."""
