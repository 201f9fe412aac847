"""How texts are scored: the methods, and the options of `score` and `evaluate --texts`; without torch."""

from typing import Literal, NamedTuple

Reading = Literal["forwards", "pseudo", "pseudo_words"]
"""forwards: sum_t log p(x[t] | x[< t]), not divided by the length. pseudo: the pseudo-log-likelihood, each token given
all others (Salazar et al. 2020, arXiv:1910.14659). pseudo_words: the same, each token given all others but the later
tokens of its word (Kauf and Ivanova 2023, arXiv:2305.10588)."""


class ScoreOptions(NamedTuple):
    """The columns of a file that are scored, and the part of each text."""

    text_column: str | None = None
    """The column with the text; None: `text`."""
    source_column: str | None = None
    """For a sequence-to-sequence model, the column with the source; None: `source`."""
    target_column: str | None = None
    """The column with the target, which is scored; None: `target`."""
    errors: Literal["strict", "replace"] = "strict"
    """Invalid UTF-8 is an error, or is replaced."""
    last_word: bool = False
    """Score the last word of each text alone."""
    stride: int | None = None
    """The most tokens that each row after the first scores, in texts longer than a row; None: half a row."""
    per: Literal["word", "token"] | None = None
    """word or token: give the surprisals of each text's words or tokens, too."""
    reading: Reading | None = None
    """How texts are read; None: as by the first objective that gives texts a probability."""
