"""Questions on the differences of recipes that are asked together, and their answers.

Two recipes may be the same training under two names, or do the same: every row counts alike in every seed, to the last
bit. Such a pair is *identical*, which is no claim but what is there. Its seeds are then one and the same, so that its
noise is that of the rows alone, by which it is also tested for equivalence: of 300 rows that are all judged alike other
rows may still differ (`row_noise`), while losses do not agree to the last bit by chance.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.statistics.corrections import holm, stepwise
from bakeoff.comparison.statistics.deciding import Deciding, deciding
from bakeoff.comparison.statistics.groups import Group, merged
from bakeoff.comparison.statistics.noise import LEVEL, SEEDS_FOR_A_CLAIM, Noise, noise_of
from bakeoff.config import Config
from bakeoff.tasks.scores.jackknife import Vector

ROUNDING = 1e-12
"""The part of a sum's terms that rounding may leave of it, where there are more than two; of two equal ones nothing."""


class Difference(Config):
    """The difference of two mean scores, and whether it exceeds the noise."""

    first: str
    """The label of the first recipe; in a gain, `pre-trained`."""
    second: str
    """The label of the second recipe; in a gain, `from scratch`."""
    difference: float
    """Mean of the first minus mean of the second, in the metric's direction: for errors, a negative value is a gain."""
    relative: float | None = None
    """The difference divided by the mean of the second; None: that mean is not above zero."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval of this difference alone, as far as there can be any; None below 3 seeds."""
    p: float | None = None
    """The p-value: the chance of a difference at least as large if the two were equal."""
    adjusted_p: float | None = None
    """The p-value after the correction for all differences of the table."""
    real: bool | None = None
    """Whether the difference exceeds the noise; None: no claim can be made."""
    margin: float | None = None
    """The difference from which on the plan takes recipes for unlike; None: the plan has no margin."""
    equivalence_p: float | None = None
    """The p-value of two one-sided tests that the truth is the margin or more, corrected; None without a margin."""
    verdict: Literal["better", "equivalent", "undecided", "identical"] | None = None
    """The answer: the better one of both is known; both are within the margin; or neither was shown. A difference that
    exceeds the noise but is within the margin is `equivalent`. `identical`: no row counts otherwise in any seed, which
    is also said where no claim can be made. None: no claim can be made."""
    deciding: Deciding | None = None
    """What would decide an undecided difference; None: it is decided, or no claim can be made."""
    noise: Noise | None = None
    """The noise of the difference, by its parts; None: it is not known, or there is none."""
    widest: float | None = None
    """The largest size that the difference can have; None: the metric has no bounds, or no claim can be made."""

    @property
    def better(self) -> bool:
        """Whether one of the two is better, beyond the noise and not within the margin."""
        return bool(self.real) and self.verdict != "equivalent"

    @property
    def equivalent(self) -> bool:
        """Whether both are within the margin, also those that are identical."""
        shown = self.equivalence_p is not None and self.equivalence_p < LEVEL
        return self.verdict == "equivalent" or (self.verdict == "identical" and shown)

    @property
    def turned(self) -> "Difference":
        """The same difference the other way round, relative to nothing."""
        interval = None if self.interval is None else (-self.interval[1], -self.interval[0])
        ends = {"first": self.second, "second": self.first, "difference": -self.difference, "interval": interval}
        return self.model_copy(update={**ends, "relative": None})


class Interaction(Difference):
    """How far a difference of two recipes on one task is another one on another task."""

    task: str
    """The task on which the difference counts upwards."""
    other: str
    """The task on which it counts downwards."""


class Question(NamedTuple):
    """A weighted sum of mean scores that may be zero."""

    first: str
    """The label of what counts upwards."""
    second: str
    """The label of what counts downwards."""
    parts: Sequence[tuple[float, Group]]
    """The groups with their weights."""
    in_common: float = 0.0
    """The correlation of scores by the same seeds."""
    base: float | None = None
    """The value that the sum is relative to; None: there is none."""

    @property
    def value(self) -> float:
        """The weighted sum."""
        return sum(weight * group.mean for weight, group in self.parts)

    @property
    def widest(self) -> float:
        """The largest value that the sum can have, by the bounds of the metric; infinite where it has none."""
        reaches = [[each.reach or math.inf for each in group.answers] for _, group in self.parts]
        return (
            sum(weight * sum(of) for (weight, _), of in zip(self.parts, reaches, strict=True) if weight > 0) or math.inf
        )

    @property
    def identical(self) -> bool:
        """Whether the sum is zero in every seed and every row, of which there are two at least."""
        weights, groups = zip(*self.parts, strict=True)
        if len({tuple(group.scores) for group in groups}) != 1 or not groups[0].answers:
            return False
        values: list[list[Vector]] = [[np.array([*group.scores.values()]) for group in groups]]
        values += [[group.answers[k].by_seed for group in groups] for k in range(len(groups[0].answers))]
        return all(each[0].shape[-1] > 1 for each in values[1:]) and all(_vanishes(weights, each) for each in values)


def _vanishes(weights: Sequence[float], values: Sequence[Vector]) -> bool:
    """Whether a weighted sum of arrays is zero everywhere."""
    together = np.abs(np.sum([weight * each for weight, each in zip(weights, values, strict=True)], axis=0))
    terms = np.sum([abs(weight) * np.abs(each) for weight, each in zip(weights, values, strict=True)], axis=0)
    return bool(np.all(together <= (ROUNDING if len(values) > 2 else 0.0) * terms))


def unanswered(question: Question) -> Difference:
    """The difference that a question is about, before any correction and verdict but that of identical ones."""
    identical = question.identical
    value = 0.0 if identical else question.value
    noise = noise_of(question.parts, 1.0) if identical else noise_of(merged(question.parts), question.in_common)
    figures: dict[str, Any] = {
        "first": question.first,
        "second": question.second,
        "difference": value,
        "relative": None if question.base is None or question.base <= 0 else value / question.base,
        "verdict": "identical" if identical else None,
        "noise": noise,
    }
    if noise is not None:
        widest = question.widest
        low, high = noise.around(value)
        figures |= {"interval": (max(low, -widest), min(high, widest)), "p": noise.p(value)}
        figures |= {"widest": widest if math.isfinite(widest) else None}
    elif identical and _never_alike(question):
        figures |= {"interval": (0.0, 0.0), "p": 1.0}
    return Difference(**figures)


def _never_alike(question: Question) -> bool:
    """Whether there are seeds enough, and no row counts like another by chance, as losses do not."""
    seeds = min(len(group.scores) for _, group in question.parts)
    return seeds >= SEEDS_FOR_A_CLAIM and all(each.reach == 0 for _, group in question.parts for each in group.answers)


def answers_to(
    questions: Sequence[Question], factors: Sequence[int] | None = None, asking: Asking = Asking()
) -> list[Difference]:
    """The answers to questions that are asked together, as `decide` gives them."""
    return decide([unanswered(question) for question in questions], factors, asking)


def decide(
    differences: Sequence[Difference], factors: Sequence[int] | None = None, asking: Asking = Asking()
) -> list[Difference]:
    """Differences with the verdicts of one family; those whose noise is not known get no verdict.

    Differences that had verdicts in other families get new ones. Verdicts that come after a look at fewer seeds are
    corrected for it (`asking.times_for`). What shows two to be equivalent is corrected by Holm in any case.

    Args:
        differences: the differences.
        factors: the factors of the correction (`corrections`); None: those of Holm.
        asking: how they are asked.
    """
    known = [each for each in differences if each.p is not None]
    if factors is None or len(known) < len(differences):
        factors = holm(len(known))
    decided = _decided(known, [asking.times * factor for factor in factors], asking)
    return [each if each.p is None else next(decided) for each in differences]


def _decided(known: Sequence[Difference], factors: Sequence[int], asking: Asking) -> Iterator[Difference]:
    """The differences with their verdicts."""
    margin = asking.margin
    adjusted = stepwise([each.p for each in known if each.p is not None], factors)
    equal: list[float | None] = [None] * len(known)
    if margin is not None:
        within = [0.0 if each.noise is None else each.noise.p_within(each.difference, margin) for each in known]
        equal = [*stepwise(within, [asking.times * factor for factor in holm(len(known))])]
    left = factors[min(sum(p < LEVEL for p in adjusted), len(factors) - 1)] if factors else 1
    for each, p, equivalence_p in zip(known, adjusted, equal, strict=True):
        verdict = "better" if p < LEVEL else "undecided"
        if equivalence_p is not None and equivalence_p < LEVEL:
            verdict = "equivalent"
        if each.verdict == "identical":
            verdict = "identical"
        what_would_decide = None
        if each.noise is not None and verdict == "undecided":
            target = abs(each.difference) if margin is None else margin
            what_would_decide = deciding(each.noise, target, left, math.inf if each.widest is None else each.widest)
        yield each.model_copy(
            update={
                "adjusted_p": p,
                "real": p < LEVEL,
                "margin": margin,
                "equivalence_p": equivalence_p,
                "verdict": verdict,
                "deciding": what_would_decide,
            }
        )
