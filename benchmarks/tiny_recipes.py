"""Pre-trains every tiny recipe for some minutes, and prints how the held-out loss falls.

    python benchmarks/tiny_recipes.py CORPUS OUT [RECIPE ...] [--minutes 5] [--plot curves.svg]

Without names, it is all recipes that end in -tiny. Each is a run of its own, OUT/RECIPE; those that have finished are
not trained again.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import altair

import bakeoff
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.run import Run

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the training, at which the loss is printed."""


def curve(run: Run) -> list[dict[str, Any]]:
    """The validations of a run."""
    return [point for point in run.metrics() if point["kind"] == "validation"]


def row(run: Run) -> str:
    """One line of the table: for each objective the loss at some shares of the training."""
    points, steps = curve(run), run.recipe.training.budget.steps or 1
    nearest = [min(points, key=lambda point: abs(point["step"] - share * steps)) for share in SHARES]
    losses = ["; ".join(f"{value:.2f}" for value in point["losses"].values()) for point in nearest]
    objectives = ", ".join(points[-1]["losses"])
    summary = run.summary
    return (
        f"| {run.recipe.name} | {objectives} | {summary['parameters'] / 1e6:.1f} | {points[-1]['tokens'] / 1e6:.2f} | "
        + " | ".join(losses)
        + " |"
    )


def plot(runs: list[Run], path: Path) -> None:
    """The loss of each run's first objective against tokens, a panel for each objective."""
    rows = [
        {
            "recipe": run.recipe.name,
            "objective": next(iter(point["losses"])),
            "tokens": point["tokens"] / 1e6,
            "loss": next(iter(point["losses"].values())),
        }
        for run in runs
        for point in curve(run)
        if math.isfinite(point["loss"])
    ]
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
        .properties(width=380, height=260)
        .facet("objective:N", columns=2)
        .resolve_scale(x="independent", y="independent", color="independent")
    )
    chart.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("recipes", nargs="*")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--plot", type=Path, help="a picture of all curves, .svg or .png")
    options = parser.parse_intermixed_args()
    names = options.recipes or [
        name for name in recipe_names() if name.endswith("-tiny") and not load_recipe(name).input.parallel
    ]
    runs = []
    for name in names:
        path = options.out / name
        if not ((path / "recipe.yaml").exists() and Run.open(path).finished):
            budget = Budget(minutes=options.minutes)
            bakeoff.pretrain(load_recipe(name), options.corpus, path, budget=budget, resume=True)
        runs.append(Run.open_finished(path))
    print(
        "| recipe | objectives | parameters, M | tokens, M | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"
    )
    print("|---" * (4 + len(SHARES)) + "|")
    for run in runs:
        print(row(run))
    if options.plot:
        plot(runs, options.plot)


if __name__ == "__main__":
    main()
