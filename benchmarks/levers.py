"""Gain by each setting (lever) of a small encoder's training, one at a time and from both ends.

    python benchmarks/levers.py CORPUS OUT [--tokens 500k] [--seeds 1] [--seeds-of-the-largest 3] [--levers NAME ...]

The recipe laptop-encoder-tiny has all levers. It is trained without each lever in turn, and a plain recipe, which has
none, is trained with each lever alone; then both are repeated with other seeds for the five levers with the largest
gain. All trainings read the same number of tokens of CORPUS. Every model is measured on held-out rows with 15 % of the
tokens masked, whatever its rate in training. Finished trainings are not repeated, so that more seeds may be asked for
later; several of these commands may share OUT. Each uses one thread: give every process a core of its own.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from kept_trainings import measured

from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe

WITH_ALL = "laptop-encoder-tiny"
BLOCK, TRAINING = "model.encoder.block", "training"
MIXER = f"{BLOCK}.mixer"

WITHOUT: dict[str, dict[str, Any]] = {
    "Muon": {f"{TRAINING}.optimizer": {"kind": "adamw", "lr": 3e-3, "betas": [0.9, 0.98], "epsilon": 1e-8}},
    "convolution in front of the feed-forward network": {f"{BLOCK}.ffn.convolution": None},
    "norm of queries and keys": {f"{MIXER}.query_key_norm": False},
    "rotary positions": {f"{MIXER}.positions": "none", "model.embedding.positions": "learned"},
    "norm before the branch": {f"{BLOCK}.norm": "post"},
    "initial weights by inputs, tables of 0.05": {
        "model.initial.linear": 0.02,
        "model.embedding.initial": {"kind": "normal", "scale": 0.02},
    },
    "branches that begin at zero": {"model.initial.zero_branches": False},
    "no dropout": {"model.dropout": 0.1},
    "30 % masked": {"objective.0.rate": 0.15},
    "batches of 8 rows": {f"{TRAINING}.batch": 32},
}
"""Overrides that take each lever out of the recipe with all levers; all of them together make the plain recipe."""

LARGEST = 5
"""Number of levers that are measured with more seeds."""


SHORT: dict[str, Any] = {f"{TRAINING}.optimizer.lr": 2e-2}
"""One learning rate for all lengths of training, with which the table in docs/learning.md was measured."""


def changes(without: list[str]) -> dict[str, Any]:
    """The overrides that take the levers in `without` out."""
    levers = {key: value for name in without for key, value in WITHOUT[name].items()}
    return levers if "Muon" in without else SHORT | levers


def trained(corpus: str, out: Path, without: list[str], budget: Budget, seed: int) -> dict[str, float] | None:
    """The figures of one training; None: another process is doing it."""
    left = [number for number, name in enumerate(WITHOUT) if name in without]
    path = out / f"without-{'-'.join(map(str, left)) or 'none'}" / f"seed-{seed}"
    recipe = load_recipe(WITH_ALL, changes(without))
    return measured(recipe, corpus, path, budget, seed, overrides={"objective.0.rate": 0.15})


def main() -> None:
    """Train the missing models, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", default="500k")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seeds-of-the-largest", type=int, default=3)
    parser.add_argument("--levers", nargs="*", choices=list(WITHOUT), default=list(WITHOUT))
    options = parser.parse_args()
    torch.set_num_threads(1)
    budget = Budget.parse_text(f"tokens={options.tokens}")

    def mean(without: list[str], seeds: int) -> tuple[float, float, float]:
        """Mean loss, its standard deviation over seeds, and mean seconds of the trainings that exist."""
        found = [trained(options.corpus, options.out, without, budget, seed) for seed in range(seeds)]
        known = [each for each in found if each is not None]
        losses = [each["loss"] for each in known] or [float("nan")]
        spread = statistics.stdev(losses) if len(losses) > 1 else float("nan")
        return statistics.fmean(losses), spread, statistics.fmean(each["seconds"] for each in known) if known else 0.0

    def worth(name: str, seeds: int, ends: Callable[[str], tuple[list[str], list[str]]]) -> float:
        """The decrease of the loss by a lever."""
        with_it, without_it = ends(name)
        return mean(without_it, seeds)[0] - mean(with_it, seeds)[0]

    every = list(WITHOUT)
    ends: dict[str, Callable[[str], tuple[list[str], list[str]]]] = {
        "all others there": lambda name: ([], [name]),
        "no other there": lambda name: ([other for other in every if other != name], every),
    }
    seeds = dict.fromkeys(options.levers, options.seeds)
    worths = {name: [worth(name, options.seeds, end) for end in ends.values()] for name in options.levers}
    for name in sorted(worths, key=lambda name: -max(worths[name]))[:LARGEST]:
        seeds[name] = max(options.seeds, options.seeds_of_the_largest)
    print("| | held-out loss | seconds |\n|---|---|---|")
    most = max(seeds.values(), default=1)
    for title, without in (("all levers", []), ("none", every)):
        loss, spread, seconds = mean(without, most)
        print(f"| {title} ({most} seeds) | {loss:.3f} ± {spread:.3f} | {seconds:.0f} |")
    print(f"\n| lever | {' | '.join(ends)} | seeds |\n|---|{'---|' * len(ends)}---|")
    for name in sorted(worths, key=lambda name: -max(worths[name])):
        cells = [f"{-worth(name, seeds[name], end):+.3f}".replace("-", "−") for end in ends.values()]
        print(f"| {name} | {' | '.join(cells)} | {seeds[name]} |")


if __name__ == "__main__":
    main()
