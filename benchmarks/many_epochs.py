"""Little text, read many times: what each setting for many epochs is worth beside the recipe as it is.

    python benchmarks/many_epochs.py CORPUS OUT [--recipe laptop-hybrid-tiny] [--epochs 16] [--seeds 3] [--ways NAME]

Every way is trained on all of CORPUS for the same number of epochs, with the same seeds, and measured on the same
held-out rows, all masked alike. The last column is the mean difference from the recipe as it is, over the seeds, and
its standard error. Finished trainings are not repeated; several of these commands may share OUT. Each uses one thread:
give every process a core of its own.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch
from kept_trainings import measured

from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe

AS_IT_IS = "as it is"
COURSE = {"kind": "points", "points": [[0.13, 1.0], [0.53, 0.125], [1.0, 1.16]]}

WAYS: dict[str, dict[str, Any]] = {
    AS_IT_IS: {},
    "rows cut anew": {"input.cut_anew": True},
    "decay 0.05": {"training.optimizer.weight_decay": 0.05},
    "decay 0.05 with a course": {"training.optimizer.weight_decay": 0.05, "training.decay_schedule": COURSE},
    "causal, then masked": {"training.curriculum": [{"until": 0.5, "settings": {"mlm": {"causal": 1.0}}}]},
    "one row in four causal": {"objective.0.causal": 0.25},
    "running mean": {"training.average": {"kind": "ema", "share": 0.05}},
    "mean of four cycles": {"training.average": {"kind": "swa"}},
    "dropout 0.1 in the second half": {
        "model.dropout": 0.1,
        "training.curriculum": [{"until": 0.5, "dropout": 0.0}],
    },
}
"""Overrides of each way."""


def trained(recipe: str, corpus: str, out: Path, way: str, epochs: float, seed: int) -> dict[str, float] | None:
    """The figures of one training; None: another process is doing it."""
    path = out / f"{way.replace(' ', '-').replace(',', '')}-{epochs:g}" / f"seed-{seed}"
    return measured(load_recipe(recipe, WAYS[way]), corpus, path, Budget(epochs=epochs), seed)


def table(results: dict[str, dict[int, dict[str, float]]]) -> str:
    """The means in Markdown, from the results of each way by seed; a way without results is left out."""
    lines = ["| way | held-out loss | seconds | against as it is |", "|---|---|---|---|"]
    usual = results[AS_IT_IS]
    for way, of_seeds in results.items():
        if not of_seeds:
            continue
        gains = [each["loss"] - usual[seed]["loss"] for seed, each in of_seeds.items() if seed in usual]
        against = ""
        if way != AS_IT_IS and len(gains) > 1:
            against = f"{statistics.mean(gains):+.3f} ± {statistics.stdev(gains) / len(gains) ** 0.5:.3f}"
        loss, seconds = (statistics.mean(each[key] for each in of_seeds.values()) for key in ("loss", "seconds"))
        lines.append(f"| {way} | {loss:.3f} | {seconds:.0f} | {against} |")
    return "\n".join(lines)


def main() -> None:
    """Train the missing models, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="laptop-hybrid-tiny")
    parser.add_argument("--epochs", type=float, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="*", choices=[*WAYS], default=[*WAYS])
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[int, dict[str, float]]] = {way: {} for way in dict.fromkeys([AS_IT_IS, *given.ways])}
    for seed in range(given.seeds):
        for way, of_seeds in results.items():
            known = trained(given.recipe, given.corpus, given.out, way, given.epochs, seed)
            if known is not None:
                of_seeds[seed] = known
    print(table(results))


if __name__ == "__main__":
    main()
