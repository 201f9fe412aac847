"""How often a comparison's verdicts are wrong, and what they find, on made-up answers whose truth is known.

    python benchmarks/verdicts.py [SECTION ...] [--repeats N]

Sections: equal, clusters, sparse, starts, power, factors. An answer is right where a normal variable is above a
threshold (probit). Parts of it are common to all recipes (the row's difficulty, 1), the recipe's own in each row, drawn
anew in each seed and row, and common to all rows of a seed. By default they are as measured on the demo's predictions:
little that is a recipe's own in a row, and more than half of the variance drawn anew.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bakeoff.comparison.factors import analyse_factors
from bakeoff.comparison.grid import GridFacts
from bakeoff.comparison.statistics import Group, all_pairs, describe, difference

Array = NDArray[np.float64]

POINT = 0.043
"""Standard deviation of a seed, in parts of the row's difficulty, that is a point of accuracy at 70 %."""


@dataclass(frozen=True)
class World:
    """Recipes of which every truth is known."""

    accuracies: tuple[float, ...] = (0.7, 0.7)
    """Each recipe's accuracy over all seeds and rows."""
    seeds: int = 3
    rows: int = 500
    seed_spread: tuple[float, ...] | float = POINT
    """Standard deviation of a seed, for each recipe."""
    own: float = 0.15
    """Standard deviation of what is a recipe's own in a row."""
    anew: float = 1.1
    """Standard deviation of what is drawn anew in each seed and row."""
    sizes: tuple[int, ...] = ()
    """Rows of each cluster; empty: every row is a cluster of its own."""
    cluster_spread: float = 0.3
    """Standard deviation of what is a recipe's own in a cluster."""
    known: bool = True
    """Whether the verdict is told which rows are of one cluster."""

    def groups(self, random: np.random.Generator, shift: Array | None = None) -> dict[str, Group]:
        """The scores and contributions of one comparison.

        Args:
            random: the generator of all that is random.
            shift: what each recipe's only pre-training adds to its skill; None: each seed has one of its own.
        """
        count = len(self.accuracies)
        spreads = np.broadcast_to(self.seed_spread, count)
        clusters = np.repeat(np.arange(len(self.sizes)), self.sizes) if self.sizes else None
        rows = self.rows if clusters is None else len(clusters)
        of_cluster = self.cluster_spread if self.sizes else 0.0
        difficulty = random.normal(0, 1, rows)
        groups = {}
        for number, (accuracy, spread) in enumerate(zip(self.accuracies, spreads, strict=True)):
            scale = np.sqrt(1 + self.own**2 + self.anew**2 + spread**2 + of_cluster**2)
            latent = difficulty + random.normal(0, self.own, rows) + random.normal(0, self.anew, (self.seeds, rows))
            latent += random.normal(0, spread, (self.seeds, 1))
            if clusters is not None:
                latent += random.normal(0, of_cluster, len(self.sizes))[clusters]
            if shift is not None:
                latent += shift[number]
            right = (latent / scale + norm.ppf(accuracy) > 0).astype(float)
            runs = {seed: [(float(row.mean()), row)] for seed, row in enumerate(right)}
            groups[str(number)] = Group.of(runs, clusters if self.known else None, 1.0)
        return groups


def claims(world: World, repeats: int, shifts: Callable[[np.random.Generator], Array] | None = None) -> float:
    """The share of comparisons in which any difference is called real."""
    random = np.random.default_rng(7)
    tables = (all_pairs(world.groups(random, None if shifts is None else shifts(random))) for _ in range(repeats))
    return float(np.mean([any(pair.real for pair in table) for table in tables]))


def equal(repeats: int) -> Iterator[str]:
    """Equal recipes: the share of tables with any claim."""
    worst = 0.0
    for count, seeds in itertools.product((2, 4, 8), (3, 5, 9)):
        rates = {}
        for rows, (name, spread) in itertools.product(
            (200, 2000),
            {"0": 0.0, "1": POINT, "3": 3 * POINT, "0.3 to 3": tuple(np.geomspace(0.3, 3, count) * POINT)}.items(),
        ):
            world = World((0.7,) * count, seeds, rows, spread)
            rates[f"{rows} rows, {name} points"] = claims(world, max(200, repeats * 2 // count))
        worst = max(worst, *rates.values())
        most = max(rates, key=lambda each: rates[each])
        mean = np.mean(list(rates.values()))
        yield f"{count} recipes, {seeds} seeds: {mean:.1%} on average, {rates[most]:.1%} at most ({most})"
    yield f"at most {worst:.1%}"


def clusters(repeats: int) -> Iterator[str]:
    """Equal recipes, of which each has other articles that it is good at: claims without and with the clusters."""
    kinds = {
        "20 of 25": (25,) * 20,
        "8 of 60": (60,) * 8,
        "5 of 100": (100,) * 5,
        "30 of 2 to 100": tuple(np.geomspace(2, 100, 30).astype(int)),
        "200 of 1, 20 of 10": (1,) * 200 + (10,) * 20,
        "250 of 2": (2,) * 250,
    }
    for (name, sizes), seeds in itertools.product(kinds.items(), (3, 9)):
        world = World(seeds=seeds, sizes=sizes)
        blind = claims(replace(world, known=False), repeats)
        true = claims(world, repeats)
        four = claims(replace(world, accuracies=(0.7,) * 4), repeats // 2)
        none = claims(replace(world, cluster_spread=0.0), repeats)
        found = claims(replace(world, accuracies=(0.8, 0.7), cluster_spread=0.0), repeats // 2)
        yield (
            f"{name}, {seeds} seeds: taken for independent {blind:.1%}, by clusters {true:.1%}, four recipes "
            f"{four:.1%}; where clusters are alike {none:.1%}, and of ten points {found:.0%} found"
        )


def sparse(repeats: int) -> Iterator[str]:
    """Few rows, or hardly any wrong answer: claims between equals, and how often intervals hold the truth."""
    for rows, seeds, anew in itertools.product((5, 10, 30, 300), (3, 9), (0.0, 1.1)):
        rates = []
        for accuracy in (0.7, 0.95, 0.99, 0.998):
            world = World((accuracy,) * 2, seeds, rows, 0.0, own=1.0, anew=anew)
            random = np.random.default_rng(7)
            said = held = 0
            for _ in range(repeats):
                one, other = world.groups(random).values()
                apart, mean = difference("0", one, "1", other), describe(one).interval
                assert apart.p is not None
                assert mean is not None
                said += apart.p < 0.05
                held += mean[0] <= accuracy <= mean[1]
            rates.append(f"of {accuracy:.1%} {said / repeats:.1%} and {held / repeats:.1%}")
        how = "that agree in every row" if anew == 0 else "that differ"
        yield f"{rows} rows, {seeds} seeds {how}: claims, and means in their intervals: {', '.join(rates)}"


def starts(repeats: int) -> Iterator[str]:
    """Equal recipes: one pre-training for all seeds, whose luck differs by some points, or one for each seed."""
    for points, seeds, rows in itertools.product((1, 2), (3, 9), (500, 2000)):
        shared = World((0.7,) * 2, seeds, rows, POINT / 2)
        each = replace(shared, seed_spread=float(np.hypot(POINT / 2, points * POINT)))

        def luck(random: np.random.Generator, points: int = points) -> Array:
            return random.normal(0, points * POINT, 2)

        yield (
            f"pre-trainings {points} points apart, {seeds} seeds, {rows} rows: of one pre-training, claims about the "
            f"recipe {claims(shared, repeats, luck):.1%} and about the checkpoint {claims(shared, repeats):.1%}; "
            f"a pre-training for each seed {claims(each, repeats):.1%}"
        )


def power(repeats: int) -> Iterator[str]:
    """One recipe is better: how often its difference from the second is called real."""
    for count, rows in itertools.product((2, 4), (500, 900, 2000)):
        for better in (0.02, 0.027, 0.044, 0.05, 0.062):
            rates = []
            for seeds in (3, 5, 8, 9):
                world = World((0.7 + better, *(0.7,) * (count - 1)), seeds, rows)
                random = np.random.default_rng(7)
                found = 0
                for _ in range(repeats):
                    table = all_pairs(world.groups(random))
                    found += any(pair.real for pair in table if {pair.first, pair.second} == {"0", "1"})
                rates.append(f"{seeds} seeds {found / repeats:.0%}")
            yield f"{count} recipes, {rows} rows, {100 * better:.1f} points: {', '.join(rates)}"


def factors(repeats: int) -> Iterator[str]:
    """Grids of equal recipes: the share of families of main effects, and of interactions, with any claim."""
    for sizes, seeds in itertools.product(((2, 2), (2, 4), (2, 2, 2)), (3, 5, 9)):
        levels = {f"factor {i}": [*map(str, range(size))] for i, size in enumerate(sizes)}
        places = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
        grid = GridFacts(name="grid", factors=levels, cells={str(i): place for i, place in enumerate(places)})
        count = len(places)
        spreads = {"0": 0.0, "1": POINT, "3": 3 * POINT, "0.3 to 3": tuple(np.geomspace(0.3, 3, count) * POINT)}
        spreads["3, others 0.3"] = (3 * POINT, *(0.3 * POINT,) * (count - 1))
        rates = {}
        for rows, (name, spread) in itertools.product((200, 2000), spreads.items()):
            random = np.random.default_rng(5)
            world = World((0.7,) * count, seeds, rows, spread)
            made = [analyse_factors(grid, world.groups(random)) for _ in range(repeats)]
            for family in ("effects", "interactions"):
                claimed = np.mean([any(each.difference.real for each in getattr(one, family)) for one in made])
                rates[f"{family}, {rows} rows, {name} points"] = float(claimed)
        most = max(rates, key=lambda each: rates[each])
        shape = " x ".join(map(str, sizes))
        mean = np.mean(list(rates.values()))
        yield f"{shape}, {seeds} seeds: {mean:.1%} on average, {rates[most]:.1%} at most ({most})"


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {
    each.__name__: each for each in (equal, clusters, sparse, starts, power, factors)
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sections that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], help="left out: all")
    parser.add_argument("--repeats", type=int, default=400, help="comparisons of each kind")
    asked = parser.parse_args(arguments)
    for name in asked.sections or SECTIONS:
        print(f"{name}: {SECTIONS[name].__doc__}", flush=True)
        for line in SECTIONS[name](asked.repeats):
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
