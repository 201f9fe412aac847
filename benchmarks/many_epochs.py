"""Little text, read many times: what each setting for many epochs is worth beside the recipe as it is.

    python benchmarks/many_epochs.py CORPUS OUT [--recipe NAME] [--epochs 4 16 64] [--seeds 3] [--ways NAME]

Every way is trained on all of CORPUS for each number of epochs, with the same seeds, and measured on the same held-out
rows, all masked alike. The first table has the mean held-out losses; the second the mean differences from the recipe as
it is after as many epochs, over the seeds, and their standard errors. Finished trainings are not repeated; several of
these commands may share OUT. Each uses one thread: give every process a core of its own.
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
DECAY = "training.optimizer.weight_decay"
COURSE = {"kind": "points", "points": [[0.13, 1.0], [0.53, 0.125], [1.0, 1.16]]}

DECAYS: dict[str, dict[str, Any]] = {
    **{f"decay {decay:g}": {DECAY: decay} for decay in (0.05, 0.2, 0.8, 1.6, 3.2, 6.4)},
    **{f"decay of {passes:g} passes": {DECAY: {"passes": passes}} for passes in (2, 1, 0.5, 0.33, 0.25, 0.17)},
}
WAYS: dict[str, dict[str, Any]] = {
    AS_IT_IS: {},
    "rows cut anew": {"input.cut_anew": True},
    "no decay": {DECAY: 0.0},
    **DECAYS,
    "dropout 0.1": {"model.dropout": 0.1},
    **{
        f"dropout {dropout:g}, {decay}": {"model.dropout": dropout, **DECAYS[decay]}
        for decay, dropouts in (
            ("decay 0.2", (0.1, 0.3)),
            ("decay 1.6", (0.2,)),
            ("decay 3.2", (0.2,)),
            ("decay of 0.5 passes", (0.2, 0.3)),
        )
        for dropout in dropouts
    },
    "decay 0.05 with a course": {DECAY: 0.05, "training.decay_schedule": COURSE},
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


Figures = dict[int, dict[str, float]]
"""The figures of a way's trainings, by seed."""


def difference(figures: Figures, usual: Figures) -> str:
    """The mean difference in held-out loss over the seeds of both, in nats, and its standard error."""
    gains = [each["loss"] - usual[seed]["loss"] for seed, each in figures.items() if seed in usual]
    if not gains:
        return ""
    error = f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.3f}" if len(gains) > 1 else ""
    return f"{statistics.mean(gains):+.3f}{error}"


def mean(figures: Figures, key: str) -> str:
    """The mean of one figure over the seeds, and their number."""
    if not figures:
        return ""
    value = statistics.mean(each[key] for each in figures.values())
    return f"{value:.3f} ({len(figures)})" if key == "loss" else f"{value:.0f}"


def tables(results: dict[str, dict[float, Figures]]) -> str:
    """Two tables in Markdown, of losses with the number of seeds and of differences, from each way's by epochs."""
    numbers = list(results[AS_IT_IS])
    heading = f"| way | {' | '.join(f'{number:g}' for number in numbers)} |\n|---{'|---' * len(numbers)}|"
    losses, differences = [heading], [heading]
    for way, of_epochs in results.items():
        losses.append(f"| {way} | {' | '.join(mean(of_epochs[number], 'loss') for number in numbers)} |")
        if way != AS_IT_IS:
            against = (difference(of_epochs[number], results[AS_IT_IS][number]) for number in numbers)
            differences.append(f"| {way} | {' | '.join(against)} |")
    seconds = f"| seconds, as it is | {' | '.join(mean(results[AS_IT_IS][number], 'seconds') for number in numbers)} |"
    return "\n".join([*losses, seconds, "", *differences])


def main() -> None:
    """Train the missing models, and print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="laptop-hybrid-tiny")
    parser.add_argument("--epochs", type=float, nargs="+", default=[16])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="*", choices=[*WAYS], default=[*WAYS])
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[float, Figures]] = {
        way: {number: {} for number in given.epochs} for way in dict.fromkeys([AS_IT_IS, *given.ways])
    }
    for seed in range(given.seeds):
        for number in given.epochs:
            for way, of_epochs in results.items():
                known = trained(given.recipe, given.corpus, given.out, way, number, seed)
                if known is not None:
                    of_epochs[number][seed] = known
    print(tables(results))


if __name__ == "__main__":
    main()
