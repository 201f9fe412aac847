"""Ages of acquisition: whether a run learns words in the order in which children do (Chang and Bergen 2022).

Each checkpoint gives the surprisal of every word after its contexts. A word is learned where the curve through these
has come half of the way from chance to its lowest point; by children, where half of them say it.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from bakeoff import checksums
from bakeoff.challenge.number_tables import number_of, read_rows
from bakeoff.challenge.rules import words_of
from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.json_files import MOST_OF_LINES, parse_json
from bakeoff.scoring.completions import Completions

FILES = ("aoa/cdi_childes.json", "cdi_childes/cdi_childes.json")
"""Places of the file in `full_eval`, of which the pipeline's scripts name the first and its program the second."""

CHILDREN = "cdi_human.csv"
"""The file beside it with the share of children who say each word, by their age in months."""

AGES = range(16, 31)
"""The ages in months that it may have."""

ROWS = 8005
"""The official number of contexts."""

CHANCE = 0.1
"""A correlation whose p-value lies above it counts as 0, officially."""

_FEWEST = 3
"""The fewest points of a curve, and the fewest words of a correlation."""


class WordInContext(NamedTuple):
    """A word after a context."""

    word: str
    number: int
    """The number of the context among those of the word, from 0 on."""
    context: str


class AgeScore(Config):
    """How the order in which words are learned agrees with that of children."""

    correlation: float | None
    """Pearson's, of the logarithm of the words read with the age; None: too few words have both."""
    p: float | None
    """Its p-value."""
    words: int
    """The number of words that both learn within what was measured."""

    @property
    def official(self) -> float:
        """In percent, as the official pipeline has it: 0 where the correlation may be chance."""
        if self.correlation is None or self.p is None or self.p > CHANCE:
            return 0.0
        return 100 * self.correlation


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


def read_ages(path: Path) -> dict[str, float]:
    """The age in months at which half of the children say a word, of each word for which it is among the file's ages.

    It is that of a logistic curve through the shares, a / (1 + exp(-b (x - c))) + d. Of two rows with the same word the
    first counts.

    Raises:
        UserError: the file cannot be read, lacks a column, or a share is not a number.
    """
    columns = [str(age) for age in AGES]
    rows = read_rows(path, ("word",), (), columns)
    known = [name for name in columns if rows and name in rows[0]]
    if len(known) < _FEWEST:
        raise UserError(f"{path}: has no shares of children by their age; its columns should be word, 16, 17, ... 30")
    ages = np.array(list(map(float, known)))
    found: dict[str, float | None] = {}
    for row in rows:
        if row["word"] not in found:
            shares = np.array([number_of(row[name]) for name in known])
            there = ~np.isnan(shares)
            found[row["word"]] = _age(ages[there], shares[there])
    return {word: age for word, age in found.items() if age is not None}


def age_score(
    words: Sequence[WordInContext],
    surprisals: Mapping[str, Sequence[float]],
    children: Mapping[str, float],
    tokenizer: Path,
) -> AgeScore:
    """The correlation of the order in which checkpoints learn words with the ages at which children do.

    Args:
        words: all words with their contexts.
        surprisals: those of each checkpoint in nats, by its name.
        children: those of `read_ages`.
        tokenizer: the exported tokenizer.json, by which chance is known: the surprisal of as many tokens as the word
            has where all of the vocabulary are equally probable.
    """
    inner = tokenizers.Tokenizer.from_file(str(tokenizer))
    tokens, before = np.log(inner.get_vocab_size(with_added_tokens=False)), _tokens(inner, "The")
    read, table = _curves(surprisals)
    of_word: dict[str, list[int]] = {}
    for index, each in enumerate(words):
        of_word.setdefault(each.word, []).append(index)
    pairs = []
    for word, indices in of_word.items():
        if (child := children.get(word)) is None:
            continue
        chance = tokens * max(1, _tokens(inner, f"The {word}") - before)
        if (learned := _learned(read, table[:, indices].mean(1), chance)) is not None:
            pairs.append((learned, child))
    return _correlated(pairs)


def _tokens(inner: tokenizers.Tokenizer, text: str) -> int:
    return len(inner.encode(text, add_special_tokens=False).ids)


def _curves(surprisals: Mapping[str, Sequence[float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(C,) the words read before each checkpoint, and (C, N) the surprisals, in the order of training."""
    steps = sorted(surprisals, key=words_of)
    return np.array([float(words_of(step)) for step in steps]), np.array([surprisals[step] for step in steps])


def _age(ages: NDArray[np.float64], shares: NDArray[np.float64]) -> float | None:
    """The age at which half of the children say a word; None: the curve does not pass there."""
    if len(ages) < _FEWEST:
        return None
    first, last = float(ages[0]), float(ages[-1])
    bounds = ([0.0, 0.0, first, -0.5], [2.0, 1.0, last, 0.5])
    curve = _fitted(ages, shares, [1.0, 0.1, float(ages.mean()), 0.0], bounds, 1000)
    age = None if curve is None else _reaches(curve, 0.5)
    return age if age is not None and first <= age <= last else None


def _learned(read: NDArray[np.float64], surprisals: NDArray[np.float64], chance: float) -> float | None:
    """log10 of 1 + the words read where a word is learned; None: nowhere between the first and the last checkpoint."""
    if len(read) < _FEWEST:
        return None
    known = -surprisals  # a curve that rises
    lowest, highest = float(known.min()), float(known.max())
    logarithms, size = np.log10(read + 1), highest - lowest
    lower = [0.0, 0.0, float(logarithms.min()) - 1, lowest - 2 * size - 1]
    upper = [10 * size + 1, 100.0, float(logarithms.max()) + 1, highest + 1]
    curve = _fitted(logarithms, known, [size, 1.0, float(logarithms.mean()), lowest], (lower, upper), 20_000)
    if curve is None or min(curve[:2]) <= 1e-6:
        return None
    point = _reaches(curve, (highest - chance) / 2)
    return point if point is not None and logarithms[0] <= point <= logarithms[-1] else None


def _fitted(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    start: Sequence[float],
    bounds: tuple[Sequence[float], Sequence[float]],
    most: int,
) -> tuple[float, float, float, float] | None:
    """a, b, c, d of the logistic curve through points by least squares; None: they have not converged."""
    from scipy.optimize import OptimizeWarning, curve_fit

    def curve(x: NDArray[np.float64], a: float, b: float, c: float, d: float) -> NDArray[np.float64]:
        return a / (1 + np.exp(-b * (x - c))) + d

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", OptimizeWarning)  # about the covariance, which nobody reads
        try:
            values, _ = curve_fit(curve, x, y, p0=start, bounds=bounds, maxfev=most)
        except (RuntimeError, ValueError):
            return None
    a, b, c, d = map(float, values)
    return a, b, c, d


def _reaches(curve: tuple[float, float, float, float], y: float) -> float | None:
    """Where a curve that rises reaches y; None: nowhere."""
    a, b, c, d = curve
    return None if min(a, b) <= 0 or not d < y < a + d else c - float(np.log(a / (y - d) - 1)) / b


def _correlated(pairs: Sequence[tuple[float, float]]) -> AgeScore:
    from scipy.stats import pearsonr

    columns = np.array(pairs).reshape(-1, 2).T
    if len(pairs) < _FEWEST or (np.ptp(columns, axis=1) == 0).any():
        return AgeScore(correlation=None, p=None, words=len(pairs))
    found = pearsonr(*columns)
    return AgeScore(correlation=float(found.statistic), p=float(found.pvalue), words=len(pairs))
