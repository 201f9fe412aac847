"""Which of several texts a run finds likeliest: the official way, and one in which texts tie that nearly do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.challenge.suites import Choice, Suite
from bakeoff.config import Config
from bakeoff.scoring.completions import Completions
from bakeoff.scoring.minimal_pairs import TIE


class SuiteScores(Config):
    """The scores of a run on a suite."""

    accuracy: float
    """The official mean over fields or items, in percent; texts of equal scores share the point, see `Suite.ties`."""
    tie_safe: float
    """The same where texts within 1e-4 nats share it: rounding could change their order."""
    ties: int
    """The number of items whose right text ties for the first place."""
    items: int
    """The number of items."""
    fields: dict[str, float]
    """The accuracy in each field, the official way, as a fraction."""
    predictions: dict[str, list[str]]
    """The chosen answers of each field, in the order of the items."""


class HiddenScores(SuiteScores):
    """The scores of a run on a suite whose score the organisers make of the sums."""

    sums: dict[str, list[float]]
    """The sums of log-probabilities of each item's texts, by its number and digest."""
    unknown: list[str]
    """Items that would be right, were no token of theirs unknown or their sums not equal."""


def score_choices(scorer: Completions, suite: Suite, choices: Sequence[Choice]) -> SuiteScores:
    """The scores of a run on a suite, by sums of log-probabilities of the scored parts, or their means over tokens.

    Raises:
        UserError: a score is not a finite number.
    """
    texts = [text for choice in choices for text in choice.texts]
    begins = [begin for choice in choices for begin in choice.begins]
    scores = scorer.score(texts, begins, as_lm_eval=suite.as_lm_eval)
    if suite.per_token:
        scores = scores / np.maximum(scorer.sizes(texts, begins, as_lm_eval=suite.as_lm_eval), 1)
    ends = np.cumsum([len(choice.texts) for choice in choices])[:-1]
    values = np.split(scores, ends)
    unknown = [any(each) for each in np.split(scorer.unknown(texts), ends)] if suite.hidden else [False] * len(values)
    official: dict[str, list[float]] = {}
    safe: dict[str, list[float]] = {}
    predictions: dict[str, list[str]] = {}
    lost: list[int] = []
    ties, draw = 0, np.random.default_rng(0)
    for number, (choice, own, not_read) in enumerate(zip(choices, values, unknown, strict=True)):
        chosen = int(own.argmax())  # the first of equal ones
        first = own >= own.max() - TIE
        ties += bool(first[choice.right] and first.sum() > 1)
        credit = 0.0 if not_read else _official(suite, own, choice.right)
        if chosen == choice.right and not credit:
            lost.append(number)
        official.setdefault(choice.field, []).append(credit)
        safe.setdefault(choice.field, []).append(0.0 if not_read else _credit(first, choice.right))
        equal = np.flatnonzero(own == own.max())
        drawn = chosen if suite.ties == "first" or len(equal) == 1 else int(draw.choice(equal))
        predictions.setdefault(choice.field, []).append(choice.answers[drawn])
    found: dict[str, Any] = {
        "accuracy": 100 * _mean(suite, official),
        "tie_safe": 100 * _mean(suite, safe),
        "ties": ties,
        "items": len(choices),
        "fields": {field: float(np.mean(credits)) for field, credits in official.items()},
        "predictions": predictions,
    }
    if not suite.hidden:
        return SuiteScores(**found)
    names = [f"{number}:{choice.digest}" for number, choice in enumerate(choices)]
    return HiddenScores(
        **found,
        sums={name: own.tolist() for name, own in zip(names, values, strict=True)},
        unknown=[names[number] for number in lost],
    )


def official_predictions(scores: SuiteScores) -> dict[str, Any]:
    """The predictions in the form of a submission."""
    return {
        field: {"predictions": [{"id": f"{field}_{number}", "pred": each} for number, each in enumerate(chosen)]}
        for field, chosen in scores.predictions.items()
    }


def _official(suite: Suite, scores: NDArray[np.float64], right: int) -> float:
    """The credit of an item as the organisers give it."""
    best = scores == scores.max()
    if suite.ties == "first":
        return float(int(scores.argmax()) == right)
    if suite.ties == "wrong":
        return float(best[right] and best.sum() == 1)
    return _credit(best, right)


def _credit(first: NDArray[np.bool_], right: int) -> float:
    return 1 / int(first.sum()) if first[right] else 0.0


def _mean(suite: Suite, credits: dict[str, list[float]]) -> float:
    """The mean over fields, or over the suite's groups of fields that there are, or over items."""
    if suite.over_items:
        return float(np.mean([credit for each in credits.values() for credit in each]))
    means = {field: float(np.mean(each)) for field, each in credits.items()}
    groups = [[mean for field, mean in means.items() if field.startswith(group)] for group in suite.groups]
    present = [each for each in groups if each] or [list(means.values())]
    return float(np.mean([np.mean(each) for each in present]))
