"""Surprisals of words that children learn, after contexts, in each checkpoint (Chang and Bergen 2022)."""

from pathlib import Path
from typing import Any, NamedTuple

from bakeoff import checksums
from bakeoff.challenge.rules import words_of
from bakeoff.errors import UserError
from bakeoff.json_files import MOST_OF_LINES, parse_json
from bakeoff.scoring.completions import Completions

FILES = ("aoa/cdi_childes.json", "cdi_childes/cdi_childes.json")
"""Places of the file in `full_eval`, of which the pipeline's scripts name the first and its program the second."""

ROWS = 8005
"""The official number of contexts."""


class WordInContext(NamedTuple):
    """A word after a context."""

    word: str
    number: int
    """The number of the context among those of the word, from 0 on."""
    context: str


def read_contexts(path: Path) -> list[WordInContext]:
    """All words of two letters or more with each of their contexts.

    Raises:
        UserError: the file cannot be read or has another form.
    """
    content = parse_json(checksums.read(path, MOST_OF_LINES), str(path))
    found = []
    for word, contexts in content.items():
        if not isinstance(contexts, list) or not all(
            isinstance(each, dict) and isinstance(each.get("context"), str) for each in contexts
        ):
            raise UserError(f"{path}: {word}: not a list of objects with a context")
        if len(word) > 1:
            found += [WordInContext(word, number, each["context"]) for number, each in enumerate(contexts)]
    if not found:
        raise UserError(f"{path}: holds no words with contexts")
    return found


def score_words(scorer: Completions, words: list[WordInContext]) -> list[float]:
    """The surprisal of each word in nats: -log p of its tokens after the context.

    Raises:
        UserError: a surprisal is not a finite number.
    """
    before = [f"{each.context.strip()} " for each in words]
    texts = [context + each.word.strip() for context, each in zip(before, words, strict=True)]
    return [-each for each in scorer.score(texts, list(map(len, before))).tolist()]


def official_surprisals(words: list[WordInContext], surprisals: dict[str, list[float]], model: str) -> dict[str, Any]:
    """The surprisals of all checkpoints, by their names, in the form of a submission."""
    rows = [
        {
            "step": step,
            "word_count": words_of(step),
            "target_word": each.word,
            "context_id": each.number,
            "context": each.context,
            "surprisal": value,
        }
        for step, values in surprisals.items()
        for each, value in zip(words, values, strict=True)
    ]
    steps = {"total_steps": len(surprisals), "completed_steps": len(surprisals)}
    return {"metadata": {"model_name": model, "use_bos_only": False, **steps}, "results": rows}
