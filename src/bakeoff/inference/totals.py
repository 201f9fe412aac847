"""Figures over many scored texts: perplexities, bits per byte, and accuracy of last words."""

import math
from typing import Any

from bakeoff.inference.scoring import TextScore


class Totals:
    """Sums over the scores of texts.

    Args:
        last_words: whether the scores are those of last words.
    """

    def __init__(self, last_words: bool) -> None:
        self.last_words = last_words
        self.texts = self.blank = self.tokens = self.words = self.bytes = self.unknown = self.likeliest = 0
        self.log_probability = 0.0

    def add(self, score: TextScore) -> None:
        """Add the score of a text."""
        self.texts += 1
        self.blank += not score.text
        self.tokens += score.tokens
        self.unknown += score.unknown
        self.log_probability += score.log_probability
        self.bytes += len(score.text.encode())
        self.words += score.likeliest is not None if self.last_words else len(score.text.split())
        self.likeliest += score.likeliest is True

    def figures(self) -> dict[str, Any]:
        """All figures by name; a figure whose divisor is 0 is None.

        `perplexity` is exp of the mean loss of a token. `word_perplexity` is exp of the sum of losses divided by the
        number of words, separated by white space. `blank` is the number of texts without a scored token. `accuracy` is
        the share of last words whose tokens were all the likeliest.
        """
        figures: dict[str, Any] = {"texts": self.texts, "blank": self.blank, "tokens": self.tokens}
        figures |= {"words": self.words, "unknown": self.unknown, "log_probability": self.log_probability}
        if self.last_words:
            figures["accuracy"] = self.likeliest / self.words if self.words else None
        else:
            bits = -self.log_probability / math.log(2)
            figures["perplexity"] = self._perplexity(self.tokens)
            figures["bytes"], figures["bits_per_byte"] = self.bytes, bits / self.bytes if self.bytes else None
        figures["word_perplexity"] = self._perplexity(self.words)
        return figures

    def _perplexity(self, count: int) -> float | None:
        return math.exp(min(-self.log_probability / count, 700.0)) if count else None
