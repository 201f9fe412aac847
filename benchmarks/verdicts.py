"""How often a comparison's verdicts are wrong, and what they find, on made-up answers whose truth is known.

    python benchmarks/verdicts.py [SECTION ...] [--tables N]

`benchmarks/simulated_answers.py` makes the answers. Sections over independent rows go over thousands of tables at once,
by the package's functions on what these need to know of a table; `twin` compares the two ways.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from simulated_answers import POINT, Array, Tables, World
from simulated_metrics import METRICS, table

from bakeoff.comparison.planning.asking import Asking, times_for
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.statistics.corrections import shaffer
from bakeoff.comparison.statistics.factors import analyse_factors
from bakeoff.comparison.statistics.noise import CAUTION, FEWEST_TO_COUNT_ONCE, LEVEL, least_in_common
from bakeoff.comparison.statistics.pairs import all_pairs, describe, difference
from bakeoff.comparison.statistics.row_noise import ADDED
from bakeoff.comparison.statistics.seed_noise import moderated

SPREADS: dict[str, Callable[[int], Sequence[float]]] = {
    "0": lambda count: [0.0] * count,
    "0.7": lambda count: [0.7] * count,
    "1": lambda count: [1.0] * count,
    "3": lambda count: [3.0] * count,
    "from 0.3 to 3": lambda count: list(np.geomspace(0.3, 3, count)),
    "one 3, others 0.3": lambda count: [3.0] + [0.3] * (count - 1),
    "one 0.3, others 3": lambda count: [0.3] + [3.0] * (count - 1),
    "half 0.3, half 3": lambda count: [0.3] * (count // 2) + [3.0] * (count - count // 2),
    "one 10, others 1": lambda count: [10.0] + [1.0] * (count - 1),
}
"""Standard deviations of the seeds of some recipes, in points."""


def spread(points: Sequence[float]) -> tuple[float, ...]:
    """Standard deviations of seeds, from points."""
    return tuple(POINT * each for each in points)


def p_values(tables: Tables) -> Array:
    """(T, P) the p-values of all pairs of recipes, before the correction, as `all_pairs` has them."""
    seeds = tables.scores.shape[2]
    anew = tables.anew / tables.count
    of_one = np.einsum("taa->ta", anew)
    variances = tables.scores.var(2, ddof=1)
    freedom = np.full(variances.shape[1], seeds - 1.0)
    known = moderated(variances, freedom, of_one)
    i, j = np.triu_indices(variances.shape[1], 1)
    apart = tables.scores.mean(2)[:, i] - tables.scores.mean(2)[:, j]
    one, other = known.variance[:, i] / seeds, known.variance[:, j] / seeds
    seed_freedom = (one + other) / (one / known.freedom[:, i] + other / known.freedom[:, j])
    common = least_in_common(tables.scores, known.variance)[:, None]
    drawn = (of_one[:, i] + of_one[:, j] - 2 * anew[:, i, j]) / seeds
    over_seeds = np.maximum(one + other - 2 * common * np.sqrt(one * other), drawn)
    both = tables.rows[:, i, i] + tables.rows[:, j, j] - 2 * tables.rows[:, i, j]
    rows = both / tables.count + ADDED / tables.count**2
    if len(variances[0]) > 2 or seeds > FEWEST_TO_COUNT_ONCE:
        rows = np.maximum(rows - drawn, 0)
    freedom = (over_seeds + rows) ** 2 / (over_seeds**2 / seed_freedom + rows**2 / (tables.count - 1))
    freedom = np.minimum(freedom, tables.count - 1)
    return np.asarray(CAUTION * 2 * stats.t.sf(np.abs(apart) / np.sqrt(over_seeds + rows), freedom))


def corrected(p: Array, factors: Sequence[int]) -> Array:
    """(T, P) p-values after the correction, as of `stepwise`."""
    order = np.argsort(p, 1)
    adjusted = np.maximum.accumulate(np.take_along_axis(p, order, 1) * factors, 1)
    back = np.empty_like(p)
    np.put_along_axis(back, order, adjusted, 1)
    return back


def false(world: World, tables: int) -> float:
    """The share of tables of equal recipes with any claim."""
    p = p_values(world.tables(np.random.default_rng(7), tables))
    return float((p.min(1) * p.shape[1] < LEVEL).mean())


def found(world: World, tables: int) -> float:
    """The share of tables in which the difference of the first recipe from the second is claimed."""
    p = p_values(world.tables(np.random.default_rng(7), tables))
    return float((corrected(p, shaffer(len(world.accuracies)))[:, 0] < LEVEL).mean())


def twin(tables: int) -> Iterator[str]:
    """The p-values of many tables at once against those of `all_pairs`: the largest difference."""
    worst = 0.0
    for count, seeds in itertools.product((2, 4, 8), (3, 5)):
        world = World((0.7,) * count, seeds, 300, spread(SPREADS["from 0.3 to 3"](count)))
        at_once = p_values(world.tables(np.random.default_rng(7), 20))
        for p, groups in zip(at_once, world.groups(np.random.default_rng(7), 20), strict=True):
            pairs = {(pair.first, pair.second): pair.p for pair in all_pairs(groups)}
            for each, (one, other) in zip(p, itertools.combinations(groups, 2), strict=True):
                value = pairs.get((one, other), pairs.get((other, one)))
                assert value is not None
                worst = max(worst, abs(min(1.0, each) - value))
    yield f"at most {worst:.1e} apart"


def equal(tables: int) -> Iterator[str]:
    """Equal recipes: the share of tables with any claim, over all spreads, heavy-tailed seeds and collapses."""
    worst = 0.0
    kinds: Mapping[str, Mapping[str, float]] = {
        "": {},
        ", heavy tails": {"tails": 3},
        ", collapses": {"collapse": 0.15},
    }
    for count, seeds in itertools.product((2, 3, 4, 8), (3, 5, 9)):
        rates = {}
        for (name, points), rows, (kind, changes) in itertools.product(SPREADS.items(), (200, 2000), kinds.items()):
            if not changes or name in ("1", "3", "one 3, others 0.3"):
                world = World((0.7,) * count, seeds, rows, spread(points(count)), **changes)  # type: ignore[arg-type]
                rates[f"{rows} rows, {name} points{kind}"] = false(world, tables)
        worst = max(worst, *rates.values())
        most = max(rates, key=lambda each: rates[each])
        mean = np.mean(list(rates.values()))
        yield f"{count} recipes, {seeds} seeds: {mean:.1%} on average, {rates[most]:.1%} at most ({most})"
    yield f"at most {worst:.1%}"


def power(tables: int) -> Iterator[str]:
    """One recipe is better: how often its difference from the second is claimed."""
    for count, rows, points in itertools.product((2, 4), (500, 900, 2000), (0.7, 1.0)):
        for better in (0.02, 0.027, 0.044, 0.05, 0.062):
            rates = []
            for seeds in (3, 5, 8, 9):
                accuracies = (0.7 + better, *(0.7,) * (count - 1))
                world = World(accuracies, seeds, rows, points * POINT)
                rates.append(f"{seeds} seeds {found(world, tables):.0%}")
            yield f"{count} recipes, {rows} rows, seeds {points} points, {100 * better:.1f} better: {', '.join(rates)}"


def paired(tables: int) -> Iterator[str]:
    """Seeds that are good or bad for all recipes alike: false claims, and what is found of two points."""
    for count, seeds, correlation in itertools.product((2, 4), (3, 5, 9), (0.0, 0.5, 0.8)):
        rates = []
        for name in ("1", "from 0.3 to 3"):
            world = World((0.7,) * count, seeds, 2000, spread(SPREADS[name](count)), in_common=correlation)
            better = replace(world, accuracies=(0.72, *world.accuracies[1:]))
            rates.append(f"{name} points {false(world, tables):.1%} and {found(better, tables):.0%}")
        yield f"{count} recipes, {seeds} seeds, correlated by {correlation}: {', '.join(rates)}"


def metrics(tables: int) -> Iterator[str]:
    """Equal recipes on other metrics than accuracy: the share of tables with any claim."""
    kinds = ((2, 3, 500), (4, 3, 500), (4, 5, 500), (8, 3, 200), (4, 9, 500))
    ways: dict[str, dict[str, Any]] = {
        "": {},
        ", heavy tails": {"tails": True},
        ", clusters of 25 rows": {"together": 25},
        ", both": {"tails": True, "together": 25},
    }
    for metric, (count, seeds, rows), (way, options) in itertools.product(METRICS, kinds, ways.items()):
        rates = {}
        for name in ("1", "from 0.3 to 3", "one 3, others 0.3"):
            random = np.random.default_rng(7)
            spreads = spread(SPREADS[name](count))
            made = (table(metric, random, spreads, seeds, rows, **options) for _ in range(tables // 4))
            rates[name] = float(np.mean([any(pair.real for pair in all_pairs(groups)) for groups in made]))
        most = max(rates, key=lambda each: rates[each])
        yield f"{metric}, {count} recipes, {seeds} seeds, {rows} rows{way}: {rates[most]:.1%} at most ({most} points)"


def claims(world: World, tables: int) -> float:
    """The share of tables in which any difference is called real, one table after the other."""
    made = world.groups(np.random.default_rng(7), tables)
    return float(np.mean([any(pair.real for pair in all_pairs(groups)) for groups in made]))


def clusters(tables: int) -> Iterator[str]:
    """Equal recipes, of which each has other articles that it is good at: claims without and with the clusters."""
    tables //= 4
    kinds = {
        "20 of 25": (25,) * 20,
        "8 of 60": (60,) * 8,
        "5 of 100": (100,) * 5,
        "3 of 150": (150,) * 3,
        "4 of 10 to 300": tuple(np.geomspace(10, 300, 4).astype(int)),
        "30 of 2 to 100": tuple(np.geomspace(2, 100, 30).astype(int)),
        "200 of 1, 20 of 10": (1,) * 200 + (10,) * 20,
        "250 of 2": (2,) * 250,
    }
    for (name, sizes), seeds in itertools.product(kinds.items(), (3, 9)):
        world = World(seeds=seeds, sizes=sizes)
        blind = claims(replace(world, known=False), tables)
        true = claims(world, tables)
        four, eight = (claims(replace(world, accuracies=(0.7,) * count), tables) for count in (4, 8))
        unequal = claims(replace(world, accuracies=(0.7,) * 4, seed_spread=spread(SPREADS["from 0.3 to 3"](4))), tables)
        none = claims(replace(world, cluster_spread=0.0), tables)
        seen = claims(replace(world, accuracies=(0.8, 0.7), cluster_spread=0.0), tables)
        yield (
            f"{name}, {seeds} seeds: taken for independent {blind:.1%}, by clusters {true:.1%}, four recipes "
            f"{four:.1%}, with seeds from 0.3 to 3 points {unequal:.1%}, eight {eight:.1%}; where "
            f"clusters are alike {none:.1%}, and of ten points {seen:.0%} found"
        )


def sparse(tables: int) -> Iterator[str]:
    """Few rows, or hardly any wrong answer: claims between equals, and how often intervals hold the truth."""
    tables //= 4
    for rows, seeds, anew in itertools.product((5, 10, 30, 300), (3, 9), (0.0, 1.1)):
        rates = []
        for accuracy in (0.7, 0.95, 0.99, 0.998):
            world = World((accuracy,) * 2, seeds, rows, 0.0, own=1.0, anew=anew)
            said = held = 0
            for groups in world.groups(np.random.default_rng(7), tables):
                one, other = groups.values()
                apart, mean = difference("0", one, "1", other), describe(one).interval
                assert apart.p is not None
                assert mean is not None
                said += apart.p < LEVEL
                held += mean[0] <= accuracy <= mean[1]
            rates.append(f"of {accuracy:.1%} {said / tables:.1%} and {held / tables:.1%}")
        how = "that agree in every row" if anew == 0 else "that differ"
        yield f"{rows} rows, {seeds} seeds {how}: claims, and means in their intervals: {', '.join(rates)}"


def starts(tables: int) -> Iterator[str]:
    """Equal recipes: one pre-training for all seeds, whose luck differs by some points, or one for each seed."""
    for points, seeds, rows in itertools.product((1, 2), (3, 9), (500, 2000)):
        shared = World((0.7,) * 2, seeds, rows, POINT / 2)
        lucky = replace(shared, luck=points * POINT)
        each = replace(shared, seed_spread=float(np.hypot(POINT / 2, points * POINT)))
        yield (
            f"pre-trainings {points} points apart, {seeds} seeds, {rows} rows: of one pre-training, claims about the "
            f"recipe {false(lucky, tables):.1%} and about the checkpoint {false(shared, tables):.1%}; "
            f"a pre-training for each seed {false(each, tables):.1%}"
        )


def growing(tables: int) -> Iterator[str]:
    """Equal recipes, and two seeds more after each look at which nothing is claimed: claims at any look.

    Beside it what would be claimed if later looks were not corrected.
    """
    seeds = (3, 5, 7, 9)
    for count, name in itertools.product((2, 4, 8), ("0.7", "3", "from 0.3 to 3", "one 3, others 0.3")):
        world = World((0.7,) * count, seeds[-1], 1000, spread(SPREADS[name](count)))
        looks = (world.tables(np.random.default_rng(7), tables, first) for first in seeds)
        least = np.array([p_values(each).min(1) for each in looks]) * count * (count - 1) / 2
        multiplied, plain = (
            (least * k < LEVEL).any(0).mean() for k in (np.array([times_for(looks) for looks in range(4)])[:, None], 1)
        )
        yield f"{count} recipes, {name} points: {multiplied:.1%}, and without the correction {plain:.1%}"


def searches(tables: int) -> Iterator[str]:
    """Equal recipes, each with the luck of one search for all its seeds, in parts of a seed's deviation: claims."""
    for count, seeds, rows in itertools.product((2, 4), (3, 5, 9), (500, 2000)):
        worlds = {part: World((0.7,) * count, seeds, rows, POINT, luck=part * POINT) for part in (0.0, 0.25, 0.5, 1.0)}
        rates = ", ".join(f"{part} {false(world, tables):.1%}" for part, world in worlds.items())
        yield f"{count} recipes, {seeds} seeds of a point, {rows} rows: {rates}"


def margins(tables: int) -> Iterator[str]:
    """With a margin of a point: how often recipes are called equivalent, and better, by their true difference."""
    for seeds, rows in ((3, 2000), (5, 10_000), (9, 10_000)):
        for apart in (0.0, 0.005, 0.01, 0.02):
            world = World((0.7 + apart, 0.7, 0.7, 0.7), seeds, rows, 0.3 * POINT)
            counts = dict.fromkeys(("better", "equivalent", "undecided"), 0)
            for groups in world.groups(np.random.default_rng(7), tables // 10):
                pairs = all_pairs(groups, asking=Asking(margin=0.01))
                (answer,) = (str(pair.verdict) for pair in pairs if {pair.first, pair.second} == {"0", "1"})
                counts[answer] += 1
            rates = ", ".join(f"{name} {count / (tables // 10):.0%}" for name, count in counts.items())
            yield f"{seeds} seeds, {rows:,} rows, {100 * apart} points apart: {rates}"


def factors(tables: int) -> Iterator[str]:
    """Grids of equal recipes: the share of families (main effects, interactions of two, of three) with any claim."""
    for sizes, seeds in itertools.product(((2, 2), (2, 4), (2, 2, 2), (2, 3, 3)), (3, 5, 9)):
        levels = {f"factor {i}": [*map(str, range(size))] for i, size in enumerate(sizes)}
        places = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
        grid = GridFacts(name="grid", factors=levels, cells={str(i): place for i, place in enumerate(places)})
        count = len(places)
        rates: dict[str, dict[str, float]] = {}
        for rows, name in itertools.product((200, 2000), ("0", "1", "3", "from 0.3 to 3", "one 3, others 0.3")):
            world = World((0.7,) * count, seeds, rows, spread(SPREADS[name](count)))
            made = [analyse_factors(grid, each) for each in world.groups(np.random.default_rng(5), tables // 4)]
            for family in ("effects", "interactions", *(["triples"] if len(sizes) > 2 else [])):
                claimed = np.mean([any(each.difference.real for each in getattr(one, family)) for one in made])
                rates.setdefault(family, {})[f"{rows} rows, {name} points"] = float(claimed)
        shape = " x ".join(map(str, sizes))
        for family, of_family in rates.items():
            most = max(of_family, key=lambda each: of_family[each])
            mean = np.mean(list(of_family.values()))
            yield f"{shape}, {seeds} seeds, {family}: {mean:.1%} on average, {of_family[most]:.1%} at most ({most})"


PARTS = (twin, equal, paired, metrics, clusters, sparse, starts, power, factors, growing, searches, margins)

SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {each.__name__: each for each in PARTS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], help="left out: all")
    parser.add_argument("--tables", type=int, default=2000, help="tables of each kind")
    asked = parser.parse_args(arguments)
    for name in asked.sections or SECTIONS:
        print(f"{name}: {SECTIONS[name].__doc__}", flush=True)
        for line in SECTIONS[name](asked.tables):
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
