"""Stretches of a text, words or single tokens, and the tokens of each. Shapes: C characters, T tokens, W words."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.text.words import words_before
from bakeoff.tokenizer.offsets import PlacedTokens

Per = Literal["word", "token"]
"""word: a word with its punctuation, as white space separates it; in scripts without spaces a grapheme cluster. token:
a token."""


class Stretch(NamedTuple):
    """A stretch of a text without the white space at its ends, and its tokens."""

    start: int
    """The index of its first character in the text as it was given."""
    end: int
    """The index after its last character."""
    first: int
    """The index of its first token."""
    until: int
    """The index after its last token; equal to `first` for a word that the tokenizer leaves out."""


def require_per(per: str) -> None:
    """Refuse what is neither words nor tokens, which would be read as one of them.

    Raises:
        UserError: it is neither.
    """
    if per not in get_args(Per):
        raise UserError(f"per: {per!r:.50} is neither 'word' nor 'token'; give one of them")


def stretches_of(text: str, placed: PlacedTokens, per: Per) -> list[Stretch]:
    """The stretches of a text, in their order; every token belongs to one of them.

    White space belongs to the word that it introduces, and so does a token of white space alone, or of no character.
    Words that have a token in common, as characters of Chinese may, are one stretch.

    Args:
        text: the text as it was given.
        placed: its tokens with their offsets in it.
        per: word or token.
    """
    visible = np.array([not character.isspace() for character in text], bool)
    begin, end = _bare(visible, placed.begin, placed.end)
    if per == "token":
        numbers = range(len(placed.ids))
        return [Stretch(int(b), int(e), token, token + 1) for b, e, token in zip(begin, end, numbers, strict=True)]
    if not visible.any():
        return [Stretch(0, 0, 0, len(placed.ids))] if len(placed.ids) else []
    word = words_before(text)[1:] - 1  # (C,) the word of each character
    count = int(word[visible][-1]) + 1
    word = np.minimum(word, count - 1)  # white space at the end belongs to the last word
    # The words of each token's first and last character; a token goes on where the one before it has ended.
    lows = np.maximum.accumulate(word[np.minimum(begin, len(text) - 1)]) if len(begin) else begin
    highs = np.maximum(lows, word[np.clip(end - 1, 0, len(text) - 1)]) if len(end) else end
    joined = np.zeros(count, bool)  # whether a word goes on with the one before it
    for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
        joined[low + 1 : high + 1] = True
    opens = np.flatnonzero(~joined)
    characters = np.flatnonzero(visible)
    starts = characters[np.searchsorted(word[characters], opens)]
    ends = characters[np.searchsorted(word[characters], np.append(opens[1:], count)) - 1] + 1
    firsts = np.searchsorted(lows, opens)
    bounds = zip(starts.tolist(), ends.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(lows)], strict=True)
    return [Stretch(*each) for each in bounds]


def _bare(
    visible: NDArray[np.bool_], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(T,) bounds of tokens without the white space at their ends; those of white space alone stay.

    Args:
        visible: (C,) whether each character is no white space.
        begin: (T,) the first character of each token.
        end: (T,) the character after its last.
    """
    characters = np.append(np.flatnonzero(visible), len(visible))
    first = characters[np.searchsorted(characters[:-1], begin)]
    last = np.append(-1, characters[:-1])[np.searchsorted(characters[:-1], end)] + 1
    bare = first < last
    return np.where(bare, first, begin), np.where(bare, last, end)
