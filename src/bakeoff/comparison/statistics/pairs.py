"""Which differences between recipes exceed the noise, and which recipes are as good as equal.

Two things are random in a comparison. A *seed*: another pre-training (other weights, order and masks) with its
fine-tuning gives another score. And the *test set*: other examples of the same kind give another score to the very
same models. A claim is about neither these seeds nor these examples, so it has to survive both.

`seed_noise` says how far scores differ over seeds, `row_noise` how far over examples, some of which may belong
together, and `noise` puts the two together. Several pairs are compared on a task, so the p-values are corrected
(`corrections`): by Shaffer (1986) for all pairs, by Holm (1979) for gains and for comparisons with a baseline. The
chance that a table contains any false difference is at most 5 %, whatever the others are. `benchmarks/verdicts.py`
simulates what is claimed and what is found (docs/results.md).

With a margin, two one-sided tests (Schuirmann 1987) say which pairs are *equivalent*: closer to each other than the
margin. These are corrected by Holm as a family of their own. Pairs of which no row counts otherwise in any seed are
*identical* (`questions`).

A bootstrap over seeds and examples (Sellam et al. 2022, "The MultiBERTs", whose view of the two sources is the one
above) was not taken: resampling 3 seeds has 10 distinct outcomes and understates the variance by a third.

If the contributions of examples are not known, the noise is not known either, and nothing is claimed; nor is it with
fewer than 3 seeds.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.statistics.corrections import holm, shaffer
from bakeoff.comparison.statistics.groups import Group, moderate
from bakeoff.comparison.statistics.noise import in_common, noise_of
from bakeoff.comparison.statistics.questions import Difference, Question, answers_to, unanswered
from bakeoff.config import Config


class Spread(Config):
    """The scores of a recipe on a task over seeds; the score of a seed is the mean of its nested fine-tunings."""

    seeds: dict[int, float]
    """The scores, by seed."""
    mean: float
    """Mean score over seeds."""
    deviation: float | None
    """Standard deviation over seeds (n - 1); None for one seed."""
    median: float
    """Median score over seeds."""
    low: float
    """The lowest score of any seed."""
    high: float
    """The highest score of any seed."""
    interval: tuple[float, float] | None
    """95 % confidence interval of the mean for other seeds and other test examples; None below 3 seeds."""


def describe(group: Group) -> Spread:
    """Mean, median, spread and, from 3 seeds on, a confidence interval of a group's scores."""
    values = list(group.scores.values())
    noise = noise_of([(1.0, group)])
    return Spread(
        seeds=group.scores,
        mean=group.mean,
        deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        median=float(np.median(values)),
        low=min(values),
        high=max(values),
        interval=None if noise is None else noise.around(group.mean),
    )


def difference(first: str, a: Group, second: str, b: Group) -> Difference:
    """The difference of two groups on the same test examples, before any correction and verdict."""
    return unanswered(_apart(first, a, second, b))


def _apart(first: str, a: Group, second: str, b: Group, common: float = 0.0) -> Question:
    return Question(first, second, [(1.0, a), (-1.0, b)], common, b.mean)


def all_pairs(
    groups: Mapping[str, Group], lower_is_better: bool = False, asking: Asking = Asking()
) -> list[Difference]:
    """The differences of every two recipes, or of all from the plan's baseline, the better one first.

    Args:
        groups: the recipes.
        lower_is_better: whether a lower value is better.
        asking: how the questions are asked.
    """
    groups = moderate(groups)
    sign = 1 if lower_is_better else -1
    ranked = sorted(groups, key=lambda label: sign * groups[label].mean)
    pairs = list(pairs_of(ranked, asking.baseline))
    common = in_common(list(groups.values()))
    questions = [_apart(a, groups[a], b, groups[b], common) for a, b in pairs]
    return answers_to(questions, factors_of(ranked, asking.baseline), asking)


def pairs_of(labels: Sequence[str], baseline: str | None) -> Iterator[tuple[str, str]]:
    """Every two labels in their order; with a baseline among them, the pairs with it alone."""
    for pair in itertools.combinations(labels, 2):
        if baseline not in labels or baseline in pair:
            yield pair


def factors_of(labels: Sequence[str], baseline: str | None) -> list[int]:
    """The factors of the correction for the pairs of `pairs_of`."""
    return holm(len(labels) - 1) if baseline in labels else shaffer(len(labels))


def gains(
    pretrained: Mapping[str, Group], scratch: Mapping[str, Group], asking: Asking = Asking()
) -> dict[str, Difference]:
    """The differences between pre-trained and random weights, by recipe."""
    both = [label for label in pretrained if label in scratch]
    pretrained, scratch = moderate(pretrained), moderate(scratch)
    questions = [_apart("pre-trained", pretrained[label], "from scratch", scratch[label]) for label in both]
    return dict(zip(both, answers_to(questions, asking=asking), strict=True))
