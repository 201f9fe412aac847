"""Surprisals of the words or tokens of a scored text.

A word's surprisal is the sum of its tokens', -log2 p of each given what the model reads with it, so that those of all
words add up to the text's. The white space before a word belongs to it, as it does to the tokens of GPT-2's kind: such
a token says that the word before it has ended. Pimentel and Meister 2024 (arXiv:2406.14561) and Oh and Schuler 2024
(arXiv:2406.10851) move this share of the probability to the word before; here it stays where the token is.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tokenizer.offsets import PlacedTokens
from bakeoff.tokenizer.stretches import Per, Stretch, stretches_of


class Surprisal(NamedTuple):
    """The surprisal of a word or a token."""

    text: str
    """The word with its punctuation, or the token, as the text has it; empty for the end of a text that is scored."""
    start: int
    """The index of its first character in the text as it was given, white space aside."""
    end: int
    """The index after its last character."""
    surprisal: float
    """The sum of -log2 p of its tokens, in bits."""
    tokens: int
    """The number of its tokens; 0 for a word of signs that the tokenizer leaves out."""
    unknown: int
    """The number of unknown tokens among them."""


def surprisals(
    text: str, placed: PlacedTokens, log_probabilities: NDArray[np.float64], per: Per, unknown: int | None
) -> tuple[Surprisal, ...]:
    """The surprisals of a text's words or tokens, in their order.

    Args:
        text: the text as it was given.
        placed: its T tokens.
        log_probabilities: (T,) log-probabilities in nats; (T + 1,) where the text's end is scored.
        per: word or token.
        unknown: id of the unknown token; None: there is none.
    """
    stretches = stretches_of(text, placed, per)
    if len(log_probabilities) > len(placed.ids):
        last = len(text.rstrip())
        stretches.append(Stretch(last, last, len(placed.ids), len(log_probabilities)))
    return tuple(
        Surprisal(
            text[each.start : each.end],
            each.start,
            each.end,
            -math.fsum(log_probabilities[each.first : each.until]) / math.log(2) + 0.0,
            each.until - each.first,
            0 if unknown is None else int((placed.ids[each.first : each.until] == unknown).sum()),
        )
        for each in stretches
    )
