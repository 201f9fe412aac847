"""Gives every small recipe of a paper a training that was searched, by one protocol with equal trials for each.

    python benchmarks/tune_small_recipes.py CORPUS OUT [RECIPE ...] [--pairs CORPUS] [--flops 1e13] [--seed 0]

Without names, it is all recipes that end in -tiny or -mini but the laptop ones. Each keeps its architecture, objective,
initial weights and dropout, takes its training from trainings/laptop (batches of 8 rows, Muon, a short warm-up and a
linear fall to zero), and `bakeoff tune` tries it with each of three rates for the same number of operations. The rate
with the lowest loss, or of those that are within the noise of it the one nearest to the laptop recipes' own, is, with
the steps of its trial, what the recipe's rate follows from. Recipes that translate learn from the corpus of --pairs.
What has finished is not run again, and several of these commands with other recipes may share OUT. Prints the table as
Markdown, that rate in bold, in brackets what was stopped early.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import torch
import yaml

import bakeoff
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.carrying import FollowingRate
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.results import Trial, TuningResults

RATES = [5e-3, 1e-2, 2e-2]
NOISE = 0.03
"""A difference of held-out losses, in nats, that another seed may turn round (docs/learning.md)."""


def small_recipes() -> list[str]:
    """Those of papers, in a laptop's size."""
    return [name for name in recipe_names() if name.endswith(("-tiny", "-mini", "-tiny-v2")) and "laptop" not in name]


def with_laptop_training(name: str, out: Path) -> Recipe:
    """The recipe in the training of the laptop recipes."""
    changed: dict[str, Any] = {"name": name, "extends": [name, "trainings/laptop"]}
    if not isinstance(load_recipe(name).training.batch, int):  # pairs of sentences are counted in tokens
        changed["training"] = {"batch": {"tokens": 1024}}
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    return load_recipe(out / f"{name}.yaml")


def chosen(found: TuningResults, own: FollowingRate) -> Trial:
    """The trial whose rate the recipe gets.

    Where a model has learnt no more yet than how frequent tokens are, all rates are as good, and the lowest one would
    be chosen by chance.
    """
    noise = found.winner.losses[-1] + NOISE
    best = [trial for trial in found.trials if trial.state == "finished" and trial.losses[-1] <= noise]
    return min(best, key=lambda trial: abs(math.log(trial.values[RATE] / own.at(trial.steps, "muon"))))


def row(found: TuningResults, taken: Trial) -> str:
    """A line of the table: the last loss at each rate."""
    by_rate = {trial.values[RATE]: trial for trial in found.trials}
    cells = []
    for rate in RATES:
        trial = by_rate[rate]
        text = "diverged" if trial.loss is None else f"{trial.loss:.3f}"
        cells.append(
            f"**{text}**" if trial.number == taken.number else text if trial.state == "finished" else f"({text})"
        )
    return f"| {found.recipe} | {taken.tokens / 1e6:.2f} | {taken.steps:,} | {' | '.join(cells)} |"


def main() -> None:
    """Search what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--pairs")
    parser.add_argument("--flops", type=float, default=1e13)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    print(f"| recipe | tokens, M | steps | {' | '.join(f'{rate:g}' for rate in RATES)} |")
    print(f"|---|---|---|{'---|' * len(RATES)}")
    for name in options.recipes or small_recipes():
        recipe = with_laptop_training(name, options.out / "recipes")
        corpus = options.pairs if recipe.input.format == "parallel" else options.corpus
        if corpus is None:
            continue
        found = bakeoff.tune(
            recipe,
            corpus,
            options.out / "searches" / name,
            over={RATE: RATES},
            trials=len(RATES),
            budget=Budget(flops=options.flops),
            seed=options.seed,
            jobs=1,
        )
        own = recipe.training.optimizer.lr
        assert isinstance(own, FollowingRate)
        print(row(found, chosen(found, own)), flush=True)


if __name__ == "__main__":
    main()
