"""Which of several texts a run finds likeliest: the official way, in which ties count as right, and one without."""

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
    """The mean over fields, in percent; of texts that tie the first one is taken, as officially: mostly the right."""
    tie_safe: float
    """The same where a right text that ties with others counts as 1 / their number."""
    ties: int
    """The number of items whose right text ties for the first place."""
    items: int
    """The number of items."""
    fields: dict[str, float]
    """The accuracy in each field, the official way, as a fraction."""
    predictions: dict[str, list[str]]
    """The chosen answers of each field, in the order of the items."""


def score_choices(scorer: Completions, suite: Suite, choices: Sequence[Choice]) -> SuiteScores:
    """The scores of a run on a suite: sums of log-probabilities of the scored parts, not divided by their lengths.

    Raises:
        UserError: a score is not a finite number.
    """
    texts = [text for choice in choices for text in choice.texts]
    begins = [begin for choice in choices for begin in choice.begins]
    values = np.split(scorer.score(texts, begins), np.cumsum([len(choice.texts) for choice in choices])[:-1])
    official: dict[str, list[float]] = {}
    safe: dict[str, list[float]] = {}
    predictions: dict[str, list[str]] = {}
    ties = 0
    for choice, scores in zip(choices, values, strict=True):
        chosen = int(scores.argmax())  # the first of equal ones
        first = scores >= scores.max() - TIE
        ties += bool(first[choice.right] and first.sum() > 1)
        official.setdefault(choice.field, []).append(chosen == choice.right)
        safe.setdefault(choice.field, []).append(_credit(first, choice.right))
        predictions.setdefault(choice.field, []).append(choice.answers[chosen])
    return SuiteScores(
        accuracy=100 * _mean(suite, official),
        tie_safe=100 * _mean(suite, safe),
        ties=ties,
        items=len(choices),
        fields={field: float(np.mean(credits)) for field, credits in official.items()},
        predictions=predictions,
    )


def official_predictions(scores: SuiteScores) -> dict[str, Any]:
    """The predictions in the form of a submission."""
    return {
        field: {"predictions": [{"id": f"{field}_{number}", "pred": each} for number, each in enumerate(chosen)]}
        for field, chosen in scores.predictions.items()
    }


def _credit(first: NDArray[np.bool_], right: int) -> float:
    return 1 / int(first.sum()) if first[right] else 0.0


def _mean(suite: Suite, credits: dict[str, list[float]]) -> float:
    """The mean over fields, or over the suite's groups of fields that there are."""
    means = {field: float(np.mean(each)) for field, each in credits.items()}
    groups = [[mean for field, mean in means.items() if field.startswith(group)] for group in suite.groups]
    present = [each for each in groups if each] or [list(means.values())]
    return float(np.mean([np.mean(each) for each in present]))
