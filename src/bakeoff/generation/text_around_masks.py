"""Tokenization of a text with masks, into the tokens that pre-training shows around a masked token."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.tokenizer.tokenizer import Tokenizer

ANCHORS = ("a", "e", "0", "the")
"""Words to put before the rest of a word to encode it, if the word before the mask does not serve."""


def encoded_around(parts: Sequence[str], tokenizer: Tokenizer) -> list[NDArray[np.int64]]:
    """The ids of each part of a text between its masks.

    White space before a mask is dropped: it begins the masked word's token, and alone it would be a token that texts do
    not have. A part that follows a mask without white space, such as a comma, is encoded as the rest of a word, since
    some tokenizers would mark it as the beginning of a word.

    Args:
        parts: the texts before the first mask, between masks, and after the last mask; each may be empty.
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
    """The ids of a part that continues a word; None: the tokens of every anchor change when the part follows."""
    encoded = tokenizer.encode([text for anchor in anchors for text in (anchor, anchor + part)])
    for (alone, _), (both, _) in zip(encoded[::2], encoded[1::2], strict=True):
        known = len(alone) and tokenizer.unknown not in alone
        if known and len(both) > len(alone) and np.array_equal(both[: len(alone)], alone):
            return both[len(alone) :]
    return None
