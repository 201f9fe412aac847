"""Figures over many scored texts: perplexities, bits per byte, and accuracy of last words."""

import math
from typing import Any

from bakeoff.scoring.texts import TextScore
from bakeoff.tokenizer.hidden import MOST_HIDDEN, HiddenText


class Totals:
    """Sums over the scores of texts.

    Args:
        last_words: whether the scores are those of last words.
    """

    def __init__(self, last_words: bool) -> None:
        self.last_words = last_words
        self.texts = self.blank = self.tokens = self.words = self.bytes = self.unknown = self.likeliest = 0
        self.no_number = self.seen_bytes = 0
        self.log_probability = 0.0
        self.hidden = HiddenText()

    def add(self, score: TextScore) -> None:
        """Add the score of a text."""
        self.texts += 1
        self.blank += not score.text
        # Of texts without a number, too: bits of the others would not be those of the texts.
        self.hidden += score.hidden
        if score.log_probability is None:
            self.no_number += 1
            return
        self.unknown += score.unknown
        self.tokens += score.tokens
        self.log_probability += score.log_probability
        self.bytes += len(score.text.encode())
        self.seen_bytes += len(score.text.encode()) - score.hidden.hidden_bytes
        self.words += score.likeliest is not None if self.last_words else len(score.text.split())
        self.likeliest += score.likeliest is True

    def figures(self) -> dict[str, Any]:
        """All figures by name; a figure whose divisor is 0 is None, and so are bits per byte where much is hidden.

        Texts (or last words) of unknown tokens alone, whose number is `no_number`, are in no sum but `texts`,
        `hidden_characters` and the divisor of `accuracy`.

        `perplexity` is exp of the mean loss of a token. `word_perplexity` is exp of the sum of losses divided by the
        number of words, separated by white space. `blank` is the number of texts without a scored token. `accuracy` is
        the share of last words whose tokens were all the likeliest.
        """
        figures: dict[str, Any] = {"texts": self.texts, "blank": self.blank, "no_number": self.no_number}
        figures |= {"tokens": self.tokens, "words": self.words, "unknown": self.unknown}
        nothing = self.no_number == self.texts > 0
        figures["log_probability"] = None if nothing else self.log_probability
        if self.last_words:
            asked = self.words + self.no_number
            figures["accuracy"] = self.likeliest / asked if asked else None
        else:
            bits = -self.log_probability / math.log(2)
            figures["perplexity"] = self._perplexity(self.tokens)
            refused = self.hidden.share > MOST_HIDDEN or not self.seen_bytes
            figures["bytes"], figures["bits_per_byte"] = self.bytes, None if refused else bits / self.seen_bytes
            figures["hidden_characters"] = self.hidden.hidden
        figures["word_perplexity"] = self._perplexity(self.words)
        return figures

    def _perplexity(self, count: int) -> float | None:
        return math.exp(min(-self.log_probability / count, 700.0)) if count else None
