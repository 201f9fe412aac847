"""What the factors of a grid do, each by itself and one depending on another, and which of that exceeds the noise.

A cell c of a grid has a mean score m_c over S seeds. A *main effect* of a factor is the difference of two of its
levels, averaged over the levels of all other factors; an *interaction* is how far such a difference is another one at
two levels of another factor, and an interaction of three factors how far an interaction of two is another one at two
levels of the third. All are contrasts, sums of means with weights that add up to nothing, whose noise is that of
`bakeoff.comparison.statistics.noise`. The main effects of a grid on a task are one family for Holm's correction, its
interactions of two factors another, and those of three a third.

Where a cell is missing, because a training diverged, only combinations of the other factors are averaged that both
levels have, so that no other factor is mixed into the difference.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pydantic import Field

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.statistics.groups import Group, moderate
from bakeoff.comparison.statistics.questions import Difference, Question, answers_to
from bakeoff.config import Config

Weights = Mapping[str, float]
"""The weight of each cell's mean in a contrast, by the label of its recipe."""


class Effect(Config):
    """The difference of two levels of a factor, or how far it depends on another factor."""

    factors: list[str]
    """The factor; of an interaction the other one or two, too."""
    difference: Difference
    """The difference, with the levels in words."""


class FactorAnalysis(Config):
    """What the factors of a grid do on a task."""

    grid: str
    """The grid's name."""
    levels: dict[str, dict[str, float]]
    """The mean score at each level of each factor, over the other factors' levels that all of its levels have."""
    effects: list[Effect] = Field(default=[])
    """The differences of every two levels of each factor, the better level first."""
    interactions: list[Effect] = Field(default=[])
    """How far each difference of two levels is another one at two levels of another factor."""
    triples: list[Effect] = Field(default=[])
    """How far each of these interactions is another one at two levels of a third factor."""


def factor_analyses(
    grids: Sequence[GridFacts], groups: Mapping[str, Group], lower_is_better: bool, asking: Asking
) -> list[FactorAnalysis]:
    """What the factors of each grid do on one task; of a grid without a score there, nothing. See `analyse_factors`."""
    there = [grid for grid in grids if any(label in groups for label in grid.cells)]
    return [analyse_factors(grid, groups, lower_is_better, asking) for grid in there]


def analyse_factors(
    grid: GridFacts, groups: Mapping[str, Group], lower_is_better: bool = False, asking: Asking = Asking()
) -> FactorAnalysis:
    """The main effects and interactions of a grid on one task, of two factors and of three.

    Args:
        grid: the grid.
        groups: the scores of the recipes, by label; cells that are missing here are left out.
        lower_is_better: whether a lower score is better.
        asking: how the questions are asked; with a margin, which levels are equivalent, and what hardly interacts.
    """
    groups = moderate(groups)
    table = _Table(grid, groups)
    levels = {factor: table.means(factor) for factor in grid.factors}
    effects = [
        ([factor], Question(f"{factor} {one}", f"{factor} {other}", _parts(groups, weights), base=base))
        for factor in grid.factors
        for one, other in itertools.combinations(_ranked(levels[factor], lower_is_better), 2)
        for weights, base in table.effect(factor, one, other)
    ]
    return FactorAnalysis(
        grid=grid.name,
        levels=levels,
        effects=_decided(effects, asking),
        interactions=_decided(list(_interactions(grid, groups, table)), asking),
        triples=_decided(list(_triples(grid, groups, table)), asking),
    )


def _interactions(
    grid: GridFacts, groups: Mapping[str, Group], table: "_Table"
) -> Iterator[tuple[list[str], Question]]:
    for one, other in itertools.combinations(grid.factors, 2):
        for (a, b), (c, d) in _level_pairs(grid, one, other):
            for weights in table.interaction({one: (a, b), other: (c, d)}):
                words = f"{one} {a} − {b} at {other} {c}", f"at {other} {d}"
                yield [one, other], Question(*words, _parts(groups, weights))


def _triples(grid: GridFacts, groups: Mapping[str, Group], table: "_Table") -> Iterator[tuple[list[str], Question]]:
    for one, other, third in itertools.combinations(grid.factors, 3):
        for (a, b), (c, d), (e, f) in _level_pairs(grid, one, other, third):
            for weights in table.interaction({one: (a, b), other: (c, d), third: (e, f)}):
                words = f"{one} {a} − {b} at {other} {c} less that at {d}, at {third} {e}", f"at {third} {f}"
                yield [one, other, third], Question(*words, _parts(groups, weights))


def _level_pairs(grid: GridFacts, *factors: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """Every two levels of each factor with every two of the others, those of the last one changing fastest."""
    yield from itertools.product(*(itertools.combinations(grid.factors[factor], 2) for factor in factors))


class _Table:
    """The cells of a grid that have scores, found by their levels.

    Args:
        grid: the grid.
        groups: the scores of the recipes, by label.
    """

    def __init__(self, grid: GridFacts, groups: Mapping[str, Group]) -> None:
        self.grid, self.groups = grid, groups
        self.labels = {_place(levels): label for label, levels in grid.cells.items() if label in groups}

    def _others(self, *factors: str) -> Iterator[dict[str, str]]:
        """The combinations of the levels of all other factors."""
        rest = {factor: levels for factor, levels in self.grid.factors.items() if factor not in factors}
        for levels in itertools.product(*rest.values()):
            yield dict(zip(rest, levels, strict=True))

    def _shared(self, *corners: Mapping[str, str]) -> list[list[str]]:
        """The labels of these corners at every combination of the other factors at which all of them have scores."""
        places = ([_place({**rest, **corner}) for corner in corners] for rest in self._others(*corners[0]))
        return [[self.labels[each] for each in those] for those in places if all(each in self.labels for each in those)]

    def means(self, factor: str) -> dict[str, float]:
        """The mean of each level of a factor; empty where no combination has all of them."""
        levels = self.grid.factors[factor]
        shared = self._shared(*({factor: level} for level in levels))
        columns = zip(*shared, strict=True) if shared else ()
        return {
            level: float(np.mean([self.groups[label].mean for label in labels]))
            for level, labels in zip(levels, columns, strict=False)
        }

    def effect(self, factor: str, one: str, other: str) -> Iterator[tuple[Weights, float]]:
        """The contrast of two levels and the mean at the second, if any combination has both."""
        if shared := self._shared({factor: one}, {factor: other}):
            weights = {label: sign / len(shared) for pair in shared for label, sign in zip(pair, (1, -1), strict=True)}
            yield weights, float(np.mean([self.groups[second].mean for _, second in shared]))

    def interaction(self, pairs: Mapping[str, tuple[str, str]]) -> Iterator[Weights]:
        """The contrast in which each of some factors goes from one level to another, if any combination has all."""
        chosen = [*itertools.product(*pairs.values())]
        signs = [
            (-1) ** sum(level != pair[0] for level, pair in zip(each, pairs.values(), strict=True)) for each in chosen
        ]
        if shared := self._shared(*(dict(zip(pairs, each, strict=True)) for each in chosen)):
            yield {label: sign / len(shared) for those in shared for label, sign in zip(those, signs, strict=True)}


def _place(levels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(levels.items())


def _ranked(means: Mapping[str, float], lower_is_better: bool) -> list[str]:
    return sorted(means, key=lambda level: means[level] if lower_is_better else -means[level])


def _decided(effects: Sequence[tuple[list[str], Question]], asking: Asking) -> list[Effect]:
    """The effects of one family with their verdicts."""
    answers = answers_to([question for _, question in effects], asking=asking)
    return [Effect(factors=factors, difference=one) for (factors, _), one in zip(effects, answers, strict=True)]


def _parts(groups: Mapping[str, Group], weights: Weights) -> list[tuple[float, Group]]:
    return [(weight, groups[label]) for label, weight in weights.items()]
