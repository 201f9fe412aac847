"""Search of the training of every small recipe of a paper, by one protocol for all.

    python benchmarks/tune_small_recipes.py CORPUS OUT [RECIPE ...] [--pairs CORPUS] [--flops 1e13] [--plot curves.svg]

Without names, all recipes whose names end in -tiny or -mini are searched, except the laptop recipes. Each keeps its
architecture, objective, initial weights and dropout, and takes its training from trainings/laptop (batches of 8 rows,
Muon, a short warm-up and a linear decay to zero). `bakeoff tune` tries it with each of three learning rates for the
same
number of operations. The rate with the lowest loss is chosen, or, of the rates within the noise of it, the one nearest
to the laptop recipes' own. If the chosen rate is the lowest or the highest that was tried, half or twice of it is tried
as well. The recipe's rate is derived from the chosen rate and the steps of its trial. Recipes for translation learn
from
the corpus of --pairs. Finished trials are not repeated, and several of these commands with other recipes may share OUT.
The table is printed as Markdown, with the chosen rate in bold and trials that were stopped early in brackets.
"""

import argparse
import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import altair
import torch
import yaml

import bakeoff
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.rate_transfer import FollowingRate
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.runs.run import Run
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.results import Trial

FIRST_RATES = [5e-3, 1e-2, 2e-2]
BEYOND = [2.5e-3, 4e-2]
"""Rates that are tried in addition if the best of FIRST_RATES is the lowest or the highest."""
RATES = sorted([*FIRST_RATES, *BEYOND])
NOISE = 0.03
"""A difference of held-out losses in nats that another seed may reverse (docs/learning.md)."""


class Tried(NamedTuple):
    """A trial and its run."""

    trial: Trial
    run: Path


def small_recipes() -> list[str]:
    """Names of the papers' recipes in a laptop's size."""
    return [name for name in recipe_names() if name.endswith(("-tiny", "-mini", "-tiny-v2")) and "laptop" not in name]


def with_laptop_training(name: str, out: Path) -> Recipe:
    """A recipe with the training of the laptop recipes, written to a file in `out`."""
    own = load_recipe(name)
    causal = {part.kind for part in own.objective} <= {"clm", "bilm"}
    changed: dict[str, Any] = {"name": name, "extends": [name, f"trainings/laptop{'-causal' * causal}"]}
    if not isinstance(own.training.batch, int):  # batches of pairs have a number of tokens
        changed["training"] = {"batch": {"tokens": 1024}}
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    return load_recipe(out / f"{name}.yaml")


def tried(recipe: Recipe, corpus: str, out: Path, rates: list[float], budget: Budget, seed: int) -> dict[float, Tried]:
    """The trials of a search over learning rates, by rate."""
    found = bakeoff.tune(recipe, corpus, out, over={RATE: rates}, trials=len(rates), budget=budget, seed=seed, jobs=1)
    return {trial.values[RATE]: Tried(trial, out / "trials" / trial.name) for trial in found.trials}


def chosen(found: dict[float, Tried], own: FollowingRate) -> float:
    """The learning rate that a recipe gets: of those within the noise of the lowest loss, the one nearest to its own.

    For a model that has learned no more than the frequencies of tokens yet, all rates are equally good, and the one
    with
    the lowest loss would be a matter of chance.
    """
    losses = {rate: trial.losses[-1] for rate, (trial, _) in found.items() if trial.state == "finished"}
    best = [rate for rate, loss in losses.items() if loss <= min(losses.values()) + NOISE]
    return min(best, key=lambda rate: abs(math.log(rate / own.at(found[rate].trial.steps, "muon"))))


def search(recipe: Recipe, corpus: str, out: Path, budget: Budget, seed: int) -> tuple[float, dict[float, Tried]]:
    """The chosen rate, and the trials by rate."""
    own = recipe.training.optimizer.lr
    assert isinstance(own, FollowingRate)
    found = tried(recipe, corpus, out / recipe.name, FIRST_RATES, budget, seed)
    for edge, beyond in zip((min, max), BEYOND, strict=True):
        if chosen(found, own) == edge(FIRST_RATES):
            found |= tried(recipe, corpus, out / f"{recipe.name}-{beyond:g}", [beyond], budget, seed)
    return chosen(found, own), found


def row(name: str, rate: float, found: dict[float, Tried]) -> str:
    """A row of the table: the last loss at each rate."""
    cells = []
    for each in RATES:
        if each not in found:
            cells.append("")
            continue
        trial, _ = found[each]
        text = "diverged" if trial.loss is None else f"{trial.loss:.3f}"
        cells.append(f"**{text}**" if each == rate else text if trial.state == "finished" else f"({text})")
    trial, _ = found[rate]
    return f"| {name} | {trial.tokens / 1e6:.2f} | {trial.steps:,} | {' | '.join(cells)} |"


def plot(runs: list[Path], path: Path) -> None:
    """Plot the loss of each run's first objective against tokens, with a panel for each objective of several runs."""
    rows = []
    several = Counter(run.recipe.objective[0].kind for run in map(Run, runs))
    for run in map(Run, runs):
        for point in run.metrics():
            if point["kind"] == "validation" and point["step"] and several[run.recipe.objective[0].kind] > 1:
                objective, loss = next(iter(point["losses"].items()))
                tokens = point["tokens"] / 1e6
                rows.append({"recipe": run.recipe.name, "objective": objective, "tokens": tokens, "loss": loss})
    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_line()
        .encode(
            x=altair.X("tokens:Q", title="tokens, millions"),
            y=altair.Y("loss:Q", title="held-out loss", scale=altair.Scale(zero=False)),
            color=altair.Color(
                "recipe:N", legend=altair.Legend(columns=1, symbolLimit=100), scale=altair.Scale(scheme="category20")
            ),
        )
        .properties(width=420, height=300)
        .facet(altair.Facet("objective:N", title=None), columns=2)
        .resolve_scale(x="independent", y="independent", color="independent")
    )
    chart.save(path)


def main() -> None:
    """Search the missing recipes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--pairs")
    parser.add_argument("--flops", type=float, default=1e13)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="a picture of the chosen trials' curves, .svg or .png")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    print(f"| recipe | tokens, M | steps | {' | '.join(f'{rate:g}' for rate in RATES)} |")
    print(f"|---|---|---|{'---|' * len(RATES)}")
    budget, best = Budget(flops=options.flops), []
    for name in options.recipes or small_recipes():
        recipe = with_laptop_training(name, options.out / "recipes")
        corpus = options.pairs if recipe.input.format == "parallel" else options.corpus
        if corpus is None:
            continue
        rate, found = search(recipe, corpus, options.out / "searches", budget, options.seed)
        best.append(found[rate].run)
        print(row(name, rate, found), flush=True)
    if options.plot:
        plot(best, options.plot)


if __name__ == "__main__":
    main()
