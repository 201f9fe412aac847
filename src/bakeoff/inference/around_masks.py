"""What stands between the masks of a text, as tokens: those that pre-training shows around a token that it hides."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.tokenizer.tokenizer import Tokenizer

ANCHORS = ("a", "e", "0", "the")
"""Words behind which the rest of a word is encoded, where the word before the mask will not do."""


def encoded_around(parts: Sequence[str], tokenizer: Tokenizer) -> list[NDArray[np.int64]]:
    """The ids of each part of a text that masks cut.

    White space before a mask belongs to the mask, since tokens of words begin with it, and no text ends with any: alone
    it would be a token that no text has there. What is glued to a mask from behind, as a comma, goes on with its word:
    alone, some tokenizers put the beginning of a word before it.

    Args:
        parts: what stands before the first mask, between masks, and behind the last one; each may be empty.
        tokenizer: the run's.
    """
    own = [part.rstrip() for part in parts] if len(parts) > 1 else list(parts)
    found = [ids for ids, _ in tokenizer.encode(own)]
    for number, part in enumerate(own[1:], 1):
        if part and not part[0].isspace():
            before = own[number - 1].split()[-1:]
            glued = _glued(part, [*before, *ANCHORS], tokenizer)
            found[number] = found[number] if glued is None else glued
    return found


def _glued(part: str, anchors: Sequence[str], tokenizer: Tokenizer) -> NDArray[np.int64] | None:
    """The ids of what goes on with a word; None: none of the words stays as it is where the part follows."""
    encoded = tokenizer.encode([text for anchor in anchors for text in (anchor, anchor + part)])
    for (alone, _), (both, _) in zip(encoded[::2], encoded[1::2], strict=True):
        known = len(alone) and tokenizer.unknown not in alone
        if known and len(both) > len(alone) and np.array_equal(both[: len(alone)], alone):
            return both[len(alone) :]
    return None
