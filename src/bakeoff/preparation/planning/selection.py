"""Selection of the documents that are kept, in a reading of the text before all others."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.reading.pieces import DOCUMENT, PARAGRAPH, TextPiece

_DIGEST = 16  # bytes: among a thousand million documents two different ones share it with a probability of 1e-21


class SelectionOptions(Config):
    """Options for leaving documents out."""

    deduplicate: bool = False
    """Keep only the first of all documents with the same normalised text."""
    minimum_characters: int = Field(default=0, ge=0)
    """Smallest length of a document in characters of normalised text, including line ends between paragraphs."""


class DocumentSelection(NamedTuple):
    """A selection of documents."""

    left_out: NDArray[np.bool_]
    """(D,) whether each document of the text is left out."""
    skips: dict[str, int]
    """Number of documents left out, by reason."""

    def keep(self, pieces: Iterable[TextPiece], first: int = 0) -> Iterator[TextPiece]:
        """The pieces of the kept documents.

        Args:
            pieces: the text of the selection, or a stretch of it.
            first: number of the document with which the stretch starts.

        Raises:
            UserError: the text has more documents than at the time of the selection.
        """
        number = first - 1
        kept = True
        for piece in pieces:
            if piece.opens == DOCUMENT:
                number += 1
                if number >= len(self.left_out):
                    raise UserError("the text has changed while it was read; prepare again when it is complete")
                kept = not self.left_out[number]
            if kept:
                yield piece


def select(pieces: Iterable[TextPiece], options: SelectionOptions) -> DocumentSelection:
    """Read the text and select its documents.

    A document takes 17 bytes of memory, and about 60 for a moment at the end.

    Args:
        pieces: the text.
        options: the options for leaving documents out.
    """
    digests = bytearray()
    short = bytearray()  # one truth value a document
    document = blake2b(digest_size=_DIGEST)
    characters = 0
    opened = False

    def close() -> None:
        digests.extend(document.digest())
        short.append(characters < options.minimum_characters)

    for piece in pieces:
        if piece.opens == DOCUMENT:
            if opened:
                close()
            document, characters, opened = blake2b(digest_size=_DIGEST), 0, True
        text = "\n" + piece.text if piece.opens == PARAGRAPH else piece.text
        characters += len(text)
        if options.deduplicate:
            document.update(text.encode())
    if opened:
        close()
    left_out = np.frombuffer(short, dtype=bool).copy()
    skips = {f"documents below {options.minimum_characters:,} characters": int(np.count_nonzero(left_out))}
    if options.deduplicate:
        copies = _copies(np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)) & ~left_out
        skips["duplicate documents"] = int(np.count_nonzero(copies))
        left_out |= copies
    return DocumentSelection(left_out, {reason: count for reason, count in skips.items() if count})


def _copies(digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(D,) True for each of the (D, 2) digests that equals an earlier one."""
    order = np.lexsort((digests[:, 0], digests[:, 1]))  # stable: equal ones stay in the order of the text
    ordered = digests[order]
    copies = np.zeros(len(digests), dtype=bool)
    copies[order[1:]] = (ordered[1:] == ordered[:-1]).all(1)
    return copies
