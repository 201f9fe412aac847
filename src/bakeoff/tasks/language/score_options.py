"""What is scored of a file of texts, and how: the options that `score` and `evaluate --texts` have in common."""

from typing import Literal, NamedTuple


class ScoreOptions(NamedTuple):
    """Which columns of a file are scored, and what of each text."""

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
    """The most tokens that are scored of a row of a text that is longer than one, behind its first row; None: half a
    row."""
