"""How much a run's surprisals explain of the times that people need to read words (de Varda et al. 2023)."""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.challenge.number_tables import is_missing, number_of, read_rows
from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run
from bakeoff.scoring.bidirectional import BothSides
from bakeoff.scoring.completions import Completions
from bakeoff.scoring.methods import require_reading
from bakeoff.scoring.texts import scorer_of
from bakeoff.scoring.token_scores import TokenPredictions, TokenScores, batches

FILE = "reading/reading_data.csv"
"""The file, in `full_eval` and in `fast_eval`."""

ROWS = 1726
"""The official number of rows."""

EYES = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
"""Columns with times of the eyes on a word, by four definitions."""
SELF_PACED = "self_paced_reading_time"
"""The column with times between presses of a key."""
_BASE = ("Subtlex_log10", "length", "context_length")
_SPILLED = (*_BASE, "prev_length")
_NUMBERS = (*EYES, SELF_PACED, *_SPILLED)
_CELLS = {**dict.fromkeys(EYES, _BASE), SELF_PACED: (*_SPILLED, "prev_item")}
"""The cells of a row that a regression needs, by its times; the word before has a surprisal where there is one."""
_COEFFICIENTS = 17
"""Those of the larger regression: five columns, their ten products, the surprisal and the intercept."""
_MASKS = 3


class WordToRead(NamedTuple):
    """A word after a text."""

    text: str
    word: str


class ReadingScores(Config):
    """The share of the variance of reading times that surprisals explain beyond what they are predicted from else."""

    eye_tracking: float
    """(R2 - R2 without the surprisal) / (1 - R2 without), the mean over `EYES`, in percent."""
    self_paced: float
    """The same of `SELF_PACED`, with the length and the surprisal of the word before on both sides, in percent."""
    surprisals: list[float]
    """The surprisal of each row's word in nats."""
    before: list[float | None]
    """That of the word before; None: the row has none."""

    @property
    def score(self) -> float:
        """The mean of both."""
        return (self.eye_tracking + self.self_paced) / 2


def read_times(path: Path) -> list[dict[str, str]]:
    """The rows of the file.

    Raises:
        UserError: the file cannot be read, lacks a column, or a column of numbers holds something else.
    """
    texts = ("item", "word", "prev_item", "prev_word")
    rows = read_rows(path, texts, _NUMBERS)
    if len(rows) < 2 * len((*texts, *_NUMBERS)):
        raise UserError(f"{path}: {len(rows)} rows are too few for a regression")
    for name, others in _CELLS.items():
        known = [row for row in rows if not any(is_missing(row[each]) for each in (name, *others))]
        if len({number_of(row[name]) for row in known}) <= _COEFFICIENTS:
            where = f"{path}: column {name}"
            raise UserError(
                f"{where}: too few different times for a regression, of words whose other columns are known"
            )
    return rows


def score_reading(
    run: Run, scorer: Completions, masked: bool, rows: Sequence[dict[str, str]], device: str
) -> ReadingScores:
    """The scores of a run.

    Args:
        run: the run.
        scorer: the run as it scores texts.
        masked: whether the model sees both sides; then a word's tokens are predicted one after the other before three
            masks, as officially.
        rows: those of `read_times`.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: a surprisal is not a finite number.
    """
    words = [WordToRead(row["item"] or "None", row["word"]) for row in rows]
    has_before = [not is_missing(row["prev_item"]) for row in rows]
    words += [WordToRead(row["prev_item"], row["prev_word"]) for row, has in zip(rows, has_before, strict=True) if has]
    values = _before_masks(run, words, device) if masked else _forwards(scorer, words)
    own, others = values[: len(rows)], iter(values[len(rows) :].tolist())
    before = [next(others) if has else None for has in has_before]
    columns = {name: np.array([number_of(row[name]) for row in rows]) for name in _NUMBERS}
    columns["pred"] = own
    columns["prev_pred"] = np.array([math.nan if each is None else each for each in before])
    eyes = [_gain(columns, name, _BASE) for name in EYES]
    return ReadingScores(
        eye_tracking=100 * float(np.mean(eyes)),
        self_paced=100 * _gain(columns, SELF_PACED, (*_SPILLED, "prev_pred")),
        surprisals=own.tolist(),
        before=before,
    )


def official_reading(scores: ReadingScores) -> dict[str, Any]:
    """The surprisals in the form of a submission."""
    pairs = zip(scores.surprisals, scores.before, strict=True)
    rows = [
        {"id": number, "pred": own, "prev_pred": math.nan if before is None else before}
        for number, (own, before) in enumerate(pairs)
    ]
    return {"reading": {"predictions": rows}}


def _forwards(scorer: Completions, words: Sequence[WordToRead]) -> NDArray[np.float64]:
    texts = [clean(each.text) for each in words]
    return -scorer.score(
        [f"{text} {each.word.strip()}" for text, each in zip(texts, words, strict=True)], list(map(len, texts))
    )


@torch.inference_mode()
def _before_masks(run: Run, words: Sequence[WordToRead], device: str) -> NDArray[np.float64]:
    """(N,) surprisals of words, each token predicted at the first of three masks after all that is before it."""
    objective = require_reading(run, "pseudo")["pseudo"]
    scorer = scorer_of(run, objective, False, device)
    rows_of: BothSides = scorer.rows  # type: ignore[attr-defined]
    predictions: TokenPredictions = scorer.predictions  # type: ignore[attr-defined]
    distinct = list(dict.fromkeys(words))
    texts = [clean(each.text) for each in distinct]
    placed = run.tokenizer.encode_placed(
        [f"{text} {each.word.strip()}" for text, each in zip(texts, distinct, strict=True)]
    )
    found: list[TokenScores] = []
    targets: list[tuple[NDArray[np.int64], int, TokenScores, int]] = []
    for text, each in zip(texts, placed, strict=True):
        first = int((each.end <= len(text)).sum())
        found.append(TokenScores(len(each.ids) - first))
        for token in range(first, len(each.ids)):
            begin = max(0, token + _MASKS - rows_of.room)
            shown = np.append(each.ids[begin : token + 1], [each.ids[token]] * (_MASKS - 1))  # these are hidden
            targets.append((rows_of.row(shown), token - begin + len(rows_of.before), found[-1], token - first))
    for batch in batches([len(row) for row, *_ in targets], rows_of.device):
        chosen = [targets[index] for index in batch]
        firsts = [position for _, position, *_ in chosen]
        hidden = rows_of.read([row for row, *_ in chosen], firsts, [first + _MASKS for first in firsts])
        predictions.write(*hidden, [(scores, index, 1) for *_, scores, index in chosen])
    surprisal = {each: -math.fsum(scores.log_probabilities) for each, scores in zip(distinct, found, strict=True)}
    if wrong := [each for each, value in surprisal.items() if not math.isfinite(value)]:
        raise UserError(f"{run.path}: the surprisal of {wrong[0].word!r} is not a finite number")
    return np.array([surprisal[each] for each in words], np.float64)


def _gain(columns: dict[str, NDArray[np.float64]], times: str, others: Sequence[str]) -> float:
    """The share of what others leave unexplained that the surprisal explains; a row enters where all are known."""
    known = ~np.isnan([columns[name] for name in (times, "pred", *others)]).any(0)
    features = [columns[name][known] for name in others]
    features += [one * other for one, other in combinations(features, 2)]
    without = _explained(columns[times][known], features)
    return (_explained(columns[times][known], [*features, columns["pred"][known]]) - without) / (1 - without)


def _explained(values: NDArray[np.float64], features: Sequence[NDArray[np.float64]]) -> float:
    """R2 of a linear regression with an intercept."""
    scaled = [each / (np.abs(each).max() or 1.0) for each in features]  # for the numbers alone: R2 knows no scale
    design = np.column_stack([np.ones(len(values)), *scaled])
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return 1 - float(left @ left) / float(((values - values.mean()) ** 2).sum())
