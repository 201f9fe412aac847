"""Prompts: the form in which a text is read, and its ids."""

import unicodedata

from bakeoff.errors import UserError
from bakeoff.generation.text_around_masks import encoded_around
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

MASK = "[MASK]"
"""The mark in a prompt for a gap that a sequence-to-sequence model fills."""


def whole(text: str, tokenizer: Tokenizer) -> str:
    """A text as corpora are read: in NFC with single spaces, and with ends of lines where these are tokens."""
    return clean(text) if tokenizer.end_of_line is None else "\n".join(map(clean, text.split("\n")))


def begun(text: str, tokenizer: Tokenizer) -> str:
    """The same, with a space at its end if white space ends it, after which another word begins."""
    read = whole(text, tokenizer)
    return f"{read} " if text[-1:].isspace() and read and not read.endswith("\n") else read


def composed(text: str, tokenizer: Tokenizer) -> str:
    """A text in NFC, with its white space."""
    return unicodedata.normalize("NFC", text)


def has_gaps(run: Run) -> bool:
    """Whether `MASK` in a prompt of a run stands for missing text."""
    (objective, *_) = run.recipe.objective
    return objective.rewrites and not run.recipe.input.parallel


def encoded(text: str, tokenizer: Tokenizer, run: Run) -> list[int]:
    """The ids of a prompt that is read as corpora are, with the special tokens of pre-training.

    Raises:
        UserError: the prompt has more gaps than the run has marks.
    """
    (objective, *_) = run.recipe.objective
    parts = text.split(MASK) if has_gaps(run) else [text]
    marks = [tokenizer.mask] * (len(parts) - 1)
    if objective.gap_marks:
        if len(marks) > objective.gap_marks:
            raise UserError(f"a prompt has {len(marks)} {MASK}, but the run knows {objective.gap_marks} marks")
        marks = objective.mark_ids(tokenizer)[: len(marks)]
    ids = [part.tolist() for part in encoded_around(parts, tokenizer)]
    joined = ids[0] + [token for mark, part in zip(marks, ids[1:], strict=True) for token in (mark, *part)]
    if objective.rewrites:
        return [*objective.before_source(tokenizer), *joined, tokenizer.separator]
    return [tokenizer.opening, *joined]
