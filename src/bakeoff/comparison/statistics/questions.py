"""Questions on the differences of recipes that are asked together, and their answers."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from bakeoff.comparison.planning.asking import Asking, times_for
from bakeoff.comparison.statistics.corrections import holm, stepwise
from bakeoff.comparison.statistics.deciding import Deciding, deciding
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.noise import LEVEL, Noise, noise_of
from bakeoff.config import Config


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
    """95 % confidence interval of this difference alone; None below 3 seeds."""
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
    verdict: Literal["better", "equivalent", "undecided"] | None = None
    """The answer: the better one of both is known; both are within the margin; or neither was shown. A difference that
    exceeds the noise but is within the margin is `equivalent`. None: no claim can be made."""
    deciding: Deciding | None = None
    """What would decide an undecided difference; None: it is decided, or no claim can be made."""

    @property
    def better(self) -> bool:
        """Whether one of the two is better, beyond the noise and not within the margin."""
        return bool(self.real) and self.verdict != "equivalent"

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


class _Tested(NamedTuple):
    """A difference before any correction, with its noise."""

    difference: Difference
    noise: Noise


def unanswered(question: Question) -> tuple[Difference, Noise | None]:
    """The difference that a question is about and its noise, before any correction and verdict."""
    value, noise = question.value, noise_of(question.parts, question.in_common)
    figures: dict[str, Any] = {
        "first": question.first,
        "second": question.second,
        "difference": value,
        "relative": None if question.base is None or question.base <= 0 else value / question.base,
    }
    if noise is None:
        return Difference(**figures), None
    return Difference(**figures, interval=noise.around(value), p=noise.p(value)), noise


def answers_to(
    questions: Sequence[Question], factors: Sequence[int] | None = None, asking: Asking = Asking()
) -> list[Difference]:
    """The answers to questions that are asked together; those whose noise is not known get no verdict.

    Verdicts that come after a look at fewer seeds are corrected for it (`asking.times_for`).

    Args:
        questions: the questions.
        factors: the factors of the correction (`corrections`); None: those of Holm.
        asking: how they are asked.
    """
    asked = [unanswered(question) for question in questions]
    known = [_Tested(item, noise) for item, noise in asked if noise is not None]
    if factors is None or len(known) < len(questions):
        factors = holm(len(known))
    decided = _decided(known, [asking.times * factor for factor in factors], asking)
    return [item if noise is None else next(decided) for item, noise in asked]


def _decided(known: Sequence[_Tested], factors: Sequence[int], asking: Asking) -> Iterator[Difference]:
    """The differences with their verdicts."""
    margin = asking.margin
    adjusted = stepwise([each.noise.p(each.difference.difference) for each in known], factors)
    equal: list[float | None] = [None] * len(known)
    if margin is not None:
        within = [each.noise.p_within(each.difference.difference, margin) for each in known]
        equal = [*stepwise(within, [asking.times * factor for factor in holm(len(known))])]
    left = factors[min(sum(p < LEVEL for p in adjusted), len(factors) - 1)] if factors else 1
    for each, p, equivalence_p in zip(known, adjusted, equal, strict=True):
        verdict = "better" if p < LEVEL else "undecided"
        if equivalence_p is not None and equivalence_p < LEVEL:
            verdict = "equivalent"
        target = abs(each.difference.difference) if margin is None else margin
        yield each.difference.model_copy(
            update={
                "adjusted_p": p,
                "real": p < LEVEL,
                "margin": margin,
                "equivalence_p": equivalence_p,
                "verdict": verdict,
                "deciding": deciding(each.noise, target, left) if verdict == "undecided" else None,
            }
        )


def decide(differences: Sequence[Difference], looks: int = 0) -> list[Difference]:
    """Differences that were asked for apart, with the verdicts of one family, corrected by Holm.

    Args:
        differences: the differences; those without a p-value get no verdict.
        looks: how many times verdicts were seen before more seeds were added.
    """
    known = [each for each in differences if each.p is not None]
    factors = [times_for(looks) * factor for factor in holm(len(known))]
    adjusted = iter(stepwise([each.p for each in known if each.p is not None], factors))
    return [each if each.p is None else _redecided(each, next(adjusted)) for each in differences]


def _redecided(difference: Difference, p: float) -> Difference:
    verdict = "equivalent" if difference.verdict == "equivalent" else "better" if p < LEVEL else "undecided"
    values = {"adjusted_p": p, "real": p < LEVEL, "verdict": verdict}
    return difference.model_copy(update={**values, "deciding": None if p < LEVEL else difference.deciding})
