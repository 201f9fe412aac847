"""Documents as a stream of pieces of text, and the position of each in the files."""

from typing import NamedTuple

CONTINUATION, PARAGRAPH, DOCUMENT, STRETCH = 0, 1, 2, 3


class TextPosition(NamedTuple):
    """The start of a document in the text, from which reading can begin."""

    file: int
    """Number of the document's file."""
    record: int
    """Number of documents before it in the file, including empty ones."""
    document: int
    """Number of documents before it in the text, without empty ones; if unknown, counted from the start of reading."""
    empty: int
    """Number of empty documents before it, counted in the same way."""


BEGINNING = TextPosition(0, 0, 0, 0)
"""The position of the first document."""


class TextPiece(NamedTuple):
    """A paragraph, or a part of a long one."""

    opens: int
    """Kind of the piece. DOCUMENT: opens a document and a paragraph; PARAGRAPH: opens a paragraph; CONTINUATION:
    continues the paragraph before; STRETCH: continues a document after a cut between splits."""
    text: str
    """Text in NFC with single spaces; a continuation starts with a space if the paragraph has one there."""
    place: TextPosition | None = None
    """The start of the document, in the first piece of each document; None: in other pieces, or unknown."""
