"""The scores of one recipe over seeds, with what each test row contributes to them."""

import hashlib
import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bakeoff.comparison.statistics.seed_noise import SeedVariance, moderated
from bakeoff.tasks.scores.jackknife import Vector


@dataclass(frozen=True)
class Answers:
    """What the test rows of one task contribute to the scores of a recipe."""

    by_seed: Vector
    """(S, n) contributions of the rows in each seed, mean over nested fine-tunings; n is 0 where they are not known."""
    clusters: NDArray[np.intp] | None = None
    """(n,) the number of the cluster that each test row belongs to; None: all are independent."""
    reach: float | None = None
    """The distance of the metric's highest from its lowest value; None: it has no such bounds."""
    texts: tuple[Hashable, ...] = ()
    """(n,) what two rows have in common whose texts are the same, in any task; empty: texts are not known."""

    @cached_property
    def mean(self) -> Vector:
        """(n,) contributions of the rows, mean over seeds."""
        return np.asarray(self.by_seed.mean(0))

    def times(self, weight: float) -> "Answers":
        """The contributions to the scores times a weight."""
        reach = None if self.reach is None else abs(weight) * self.reach
        return replace(self, by_seed=weight * self.by_seed, reach=reach)


def drawn_anew(by_seed: Vector, clusters: NDArray[np.intp] | None = None) -> float:
    """The variance of what is drawn anew in each seed and row, or seed and cluster, of a mean over the rows of a seed.

    Args:
        by_seed: (S, n) contributions.
        clusters: (n,) the number of the cluster of each row, from 0 on; None: each row is a cluster of its own.
    """
    seeds, rows = by_seed.shape
    if seeds < 2 or rows < 2:
        return 0.0
    rest = by_seed - by_seed.mean(0) - by_seed.mean(1, keepdims=True) + by_seed.mean()
    squares = float((rest * rest).sum()) * rows / (rows - 1)
    if clusters is not None and (count := int(clusters.max()) + 1) > 1:
        sums = np.array([np.bincount(clusters, each, count) for each in rest])
        squares = max(squares, float((sums * sums).sum()) * count / (count - 1))
    return float(squares / (seeds - 1) / rows**2)


@dataclass(frozen=True)
class Group:
    """The scores of one recipe by seed, on one task or as a weighted sum over several."""

    scores: dict[int, float]
    """The metric by seed, mean over nested fine-tunings."""
    answers: tuple[Answers, ...]
    """The contributions of the test rows, for each task; seeds in the order of the scores."""
    grain: float = 0.0
    """A variance that is in every score because it is measured in steps, beside that of its rows."""
    moderated: SeedVariance | None = None
    """The variance over seeds with what other recipes say of it; None: they were not asked."""

    @classmethod
    def of(
        cls,
        runs: Mapping[int, Sequence[tuple[float, Vector]]],
        clusters: NDArray[np.intp] | None = None,
        reach: float | None = None,
        texts: Sequence[Hashable] = (),
    ) -> "Group":
        """A group averaged inside each seed first, because the fine-tunings of one seed are not independent.

        Args:
            runs: the score and the contributions of each fine-tuning, by seed.
            clusters: see `Answers`.
            reach: see `Answers`.
            texts: see `Answers`.
        """
        scores = {seed: float(np.mean([score for score, _ in nested])) for seed, nested in runs.items()}
        inside = np.array([np.mean([values for _, values in nested], axis=0) for nested in runs.values()], np.float64)
        known = tuple(texts) if len(texts) == inside.shape[1] else ()  # of some metrics no row's part is known
        return cls(scores, (Answers(inside, clusters, reach, known),))

    @property
    def mean(self) -> float:
        """Mean score over seeds."""
        return float(np.mean(list(self.scores.values())))

    @cached_property
    def floor(self) -> float:
        """The part of the variance over seeds that its rows alone make, and the steps in which it is measured."""
        return self.grain + sum(drawn_anew(each.by_seed, each.clusters) for each in self.answers)

    @cached_property
    def bits(self) -> object:
        """What two groups have in common that are one training under two names: all scores and contributions.

        Scores alone may be equal by chance, so that groups without contributions have it with no other.
        """
        rows = [hashlib.sha256(each.by_seed.tobytes()).digest() for each in self.answers]
        return (tuple(self.scores.items()), *rows) if rows else id(self)

    @property
    def sample_variance(self) -> float:
        """The sample variance of the scores over seeds."""
        return float(np.var(list(self.scores.values()), ddof=1))

    @property
    def seed_variance(self) -> SeedVariance:
        """The variance of the score of one seed, at least what its rows alone make, with its degrees of freedom."""
        if self.moderated is not None:
            return self.moderated
        freedom = np.float64(len(self.scores) - 1)
        return SeedVariance(np.maximum(self.sample_variance, self.floor), np.asarray(freedom))


def weighted(parts: Sequence[tuple[float, Group]]) -> Group:
    """The weighted sum of one recipe's groups on several tasks, by the seeds that all of them have."""
    seeds = [seed for seed in parts[0][1].scores if all(seed in group.scores for _, group in parts)]
    answers = []
    for weight, group in parts:
        order = [list(group.scores).index(seed) for seed in seeds]
        answers += [replace(each, by_seed=each.by_seed[order]).times(weight) for each in group.answers]
    scores = {seed: sum(weight * group.scores[seed] for weight, group in parts) for seed in seeds}
    return Group(scores, tuple(_joined(those) for those in _sharing_texts(answers)))


def _sharing_texts(answers: Sequence[Answers]) -> list[list[Answers]]:
    """The tasks' answers, those together which share the texts of some rows, such as two columns of one table."""
    found: list[list[Answers]] = []
    for each in answers:
        shared: list[list[Answers]] = []
        alone: list[list[Answers]] = []
        texts = set(each.texts)
        for those in found:
            (alone if all(texts.isdisjoint(other.texts) for other in those) else shared).append(those)
        found = [*alone, [*itertools.chain(*shared), each]]
    return found


def _joined(tasks: Sequence[Answers]) -> Answers:
    """Tasks as one whose rows are those of all, of which the same texts are one cluster.

    Its mean over rows is the sum of the tasks' means in each seed. The rows of task t of n_t rows, of n in all, count
    n / n_t times, and are moved by a constant, so that tasks with other means say nothing of how unlike rows are.
    """
    if len(tasks) == 1:
        return tasks[0]
    sizes = [each.by_seed.shape[1] for each in tasks]
    count, total = sum(sizes), sum(each.by_seed.mean(1, keepdims=True) for each in tasks)
    moved = [
        (each.by_seed - each.by_seed.mean(1, keepdims=True)) * count / size + total
        for each, size in zip(tasks, sizes, strict=True)
    ]
    reaches = [None if each.reach is None else each.reach * count / n for each, n in zip(tasks, sizes, strict=True)]
    known = [reach for reach in reaches if reach is not None]
    texts = tuple(itertools.chain(*(each.texts for each in tasks)))
    return Answers(np.hstack(moved), _clusters(tasks), max(known) if len(known) == len(tasks) else None, texts)


def _clusters(tasks: Sequence[Answers]) -> NDArray[np.intp]:
    """(n,) the cluster of each row of all tasks: rows of one text, and of one cluster of a task, are in one."""
    edges: list[tuple[int, int]] = []
    first_of: dict[object, int] = {}
    row = 0
    for number, each in enumerate(tasks):
        of_task = range(len(each.texts)) if each.clusters is None else each.clusters.tolist()
        for text, cluster in zip(each.texts, of_task, strict=True):
            edges += [(row, first_of.setdefault(key, row)) for key in (("text", text), (number, cluster))]
            row += 1
    graph = coo_array((np.ones(len(edges)), np.array(edges).T), shape=(row, row))
    return np.asarray(connected_components(graph, directed=False)[1], np.intp)


def moderate(groups: Mapping[str, Group]) -> dict[str, Group]:
    """The same groups with variances over seeds that are moderated by each other, where they have two seeds or more.

    Groups whose variances are moderated already stay as they are. One training under several names, such as the models
    from scratch of recipes that differ in pre-training alone, says once what it says of the others, and nothing of
    itself.

    Args:
        groups: recipes on one task, all with pre-trained weights or all from scratch.
    """
    able = {group.bits: group for group in groups.values() if len(group.scores) > 1}
    if not able or all(group.moderated is not None for group in able.values()):
        return dict(groups)
    found = moderated(
        np.array([group.sample_variance for group in able.values()]),
        np.array([len(group.scores) - 1.0 for group in able.values()]),
        np.array([group.floor for group in able.values()]),
    )
    known = {bits: SeedVariance(*each) for bits, *each in zip(able, found.variance, found.freedom, strict=True)}
    return {label: replace(group, moderated=known.get(group.bits)) for label, group in groups.items()}


def merged(parts: Sequence[tuple[float, Group]]) -> list[tuple[float, Group]]:
    """The parts of a weighted sum of which no two are one training; those whose weights cancel out are left out.

    What they have in common, the luck of their seeds, is then counted as often as it is in the sum.
    """
    sums: dict[object, tuple[float, Group]] = {}
    for weight, group in parts:
        before, first = sums.get(group.bits, (0.0, group))
        sums[group.bits] = before + weight, first
    most = max(abs(weight) for weight, _ in parts)
    return [(weight, group) for weight, group in sums.values() if abs(weight) > 1e-12 * most] or [*parts]
