"""Characters of texts that a tokenizer hides: no token stands for them but the unknown one, or none at all."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.config import Config
from bakeoff.display.wording import share_text

MOST_HIDDEN = 0.01
"""Largest share of a text's characters that may be hidden where its bits per byte are a number: characters that a
vocabulary lacks are rare ones, and would have cost far more than their share."""

_EXAMPLE = 24  # characters
_SPACES = np.array([chr(code).isspace() for code in range(0x3001)])  # no code point after these is white space


class HiddenText(Config):
    """Counts over texts: of tokens, and of characters and their bytes other than white space.

    A character is hidden if no token but an unknown one stands for it: where a whole word is unknown, all of the word's
    characters are. An unknown token that a text spells itself, as published corpora spell `<unk>`, hides nothing.
    """

    tokens: int = 0
    """Number of tokens."""
    unknown: int = 0
    """Number of unknown tokens among them."""
    characters: int = 0
    """Number of characters."""
    hidden: int = 0
    """Number of hidden characters."""
    hidden_bytes: int = 0
    """UTF-8 bytes of the hidden characters."""
    example: str = ""
    """The first hidden characters that stand together, cut."""

    def __add__(self, other: "HiddenText") -> "HiddenText":
        """The counts of both, with the first example."""
        return HiddenText(
            tokens=self.tokens + other.tokens,
            unknown=self.unknown + other.unknown,
            characters=self.characters + other.characters,
            hidden=self.hidden + other.hidden,
            hidden_bytes=self.hidden_bytes + other.hidden_bytes,
            example=self.example or other.example,
        )

    @property
    def share(self) -> float:
        """The share of the characters that is hidden."""
        return self.hidden / max(self.characters, 1)

    @property
    def all_unknown(self) -> bool:
        """Whether there are unknown tokens alone."""
        return 0 < self.tokens == self.unknown

    def __str__(self) -> str:
        """The counts in words; empty if nothing is unknown or hidden."""
        if not self.unknown and not self.hidden:
            return ""
        example = f", such as '{_shown(self.example)}'" if self.example else ""
        hidden = f"{self.hidden:,} of {self.characters:,} characters ({share_text(self.share)}){example}"
        if not self.unknown:
            return f"the tokenizer has no token for {hidden}"
        share = share_text(self.unknown / max(self.tokens, 1))
        return f"{self.unknown:,} of {self.tokens:,} tokens ({share}) are unknown and hide {hidden}"


def _shown(example: str) -> str:
    """Characters as they are, or by their numbers if none of them can be seen."""
    characters = example.removesuffix("...")
    if any(map(str.isprintable, characters)):
        return example
    return " ".join(f"U+{ord(each):04X}" for each in characters) + example[len(characters) :]


class HiddenCharacters(NamedTuple):
    """Hidden characters of each of n texts."""

    counts: NDArray[np.int64]
    """(n, 2) the number of hidden characters, and of their UTF-8 bytes."""
    example: str
    """The first hidden characters that stand together; empty: nothing is hidden."""


def hidden_characters(texts: Sequence[str], spans: NDArray[np.int64], known: NDArray[np.bool_]) -> HiddenCharacters:
    """The characters of texts for which no known token stands.

    Args:
        texts: n texts.
        spans: (T, 2) begin and end of each token in all texts joined.
        known: (T,) whether each token stands for its characters.
    """
    joined = "".join(texts)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    begin, end = spans[known].T
    size = len(codes) + 1
    opened = np.cumsum(np.bincount(begin, minlength=size) - np.bincount(end, minlength=size))
    open_positions = np.flatnonzero(opened[:-1] == 0)
    bare = codes[open_positions]
    hidden = open_positions[~_SPACES[np.minimum(bare, len(_SPACES) - 1)] | (bare >= len(_SPACES))]
    counts = np.zeros((len(texts), 2), np.int64)
    if not len(hidden):
        return HiddenCharacters(counts, "")
    hidden_codes = codes[hidden]
    sizes = 1 + (hidden_codes >= 0x80).astype(np.int64) + (hidden_codes >= 0x800) + (hidden_codes >= 0x10000)
    bounds = np.cumsum([len(text) for text in texts])
    owners = np.searchsorted(bounds, hidden, side="right")
    counts[:, 0] = np.bincount(owners, minlength=len(texts))
    counts[:, 1] = np.bincount(owners, sizes, minlength=len(texts)).astype(np.int64)
    breaks = np.flatnonzero((np.diff(hidden) > 1) | (np.diff(owners) > 0))
    last = int(hidden[breaks[0]]) if len(breaks) else int(hidden[-1])
    example = joined[int(hidden[0]) : last + 1]
    return HiddenCharacters(counts, example if len(example) <= _EXAMPLE else f"{example[: _EXAMPLE - 3]}...")
