"""The options of `score` and `evaluate --texts`, each declared here alone; without torch, for the command line."""

from typing import Literal

from bakeoff.config import Config

Reading = Literal["forwards", "pseudo", "pseudo_words"]
"""forwards: sum_t log p(x[t] | x[< t]), not divided by the length. pseudo: the pseudo-log-likelihood, each token given
all others (Salazar et al. 2020, arXiv:1910.14659). pseudo_words: the same, each token given all others but the later
tokens of its word (Kauf and Ivanova 2023, arXiv:2305.10588)."""


class FileOptions(Config):
    """How the texts of a file are scored."""

    source_column: str | None = None
    """For sequence-to-sequence runs: column or field of `texts` with the source; None: source."""
    target_column: str | None = None
    """For sequence-to-sequence runs: column or field of `texts` with the scored target; None: target."""
    errors: Literal["strict", "replace"] = "strict"
    """What to do with invalid UTF-8: refuse it, or replace it by U+FFFD."""
    last_word: bool = False
    """Score only the last word of each text (LAMBADA)."""
    stride: int | None = None
    """For texts longer than a row: number of new tokens in each further row; None: half a row."""


class ScoreOptions(FileOptions):
    """The columns of a file that are scored, how its texts are read, and the scores that each gets."""

    text_column: str | None = None
    """Column or field of `texts` with the text; None: text."""
    per: Literal["word", "token"] | None = None
    """Also give the surprisal of each word, or of each token, in bits, with its position in the text."""
    reading: Reading | None = None
    """How texts are read: forwards; each token given all others (pseudo); the same with the later tokens of its word
    hidden, too (pseudo_words); None: as the run's first objective has learned."""
