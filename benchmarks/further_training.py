"""Which learning rate further training wants: a model that is trained already, on more of its text or on another one.

    python benchmarks/further_training.py CORPUS OTHER OUT [--recipe NAME] [--start 1000] [--steps 250 1000] [--seeds 2]

A model of --start steps on CORPUS is trained further on CORPUS and on OTHER, which has the same tokenizer, for each
number of --steps, at several rates: multiples of the one that the recipe's rule has for a training of so many steps
from random weights. The table has the held-out loss of masked tokens on the text that was trained on, its mean over the
seeds; the first row has that of the start. Finished trainings are not repeated; several of these commands may share
OUT once its starts are trained.
"""

import argparse
import statistics
from pathlib import Path

import torch
from kept_trainings import measured

import bakeoff
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.training.initial_weights import Start

FACTORS = (1.0, 0.5, 0.25, 0.125)
RATE = "training.optimizer.lr"


def held_out(run: Path, corpus: str) -> float:
    """The loss of masked tokens on all of a corpus's held-out text, in nats."""
    return float(bakeoff.evaluate(run, corpus=corpus)["losses"]["mlm"])


def started(recipe: str, corpus: str, out: Path, steps: int, seed: int) -> Path:
    """The run that further trainings start from."""
    path = out / f"start-{steps}-{seed}"
    bakeoff.pretrain(load_recipe(recipe), corpus, path, seed=seed, budget=Budget(steps=steps), resume=True)
    return path


def further(recipe: str, start: Path, corpus: str, path: Path, steps: int, factor: float, seed: int) -> float | None:
    """The held-out loss after further training at a multiple of the rule's rate; None: another process is doing it."""
    usual = load_recipe(recipe).fitted(steps).training.optimizer.lr
    chosen = load_recipe(recipe, {RATE: factor * usual})
    figures = measured(chosen, corpus, path / f"seed-{seed}", Budget(steps=steps), seed, Start(run=start))
    return None if figures is None else figures["loss"]


def cell(losses: list[float]) -> str:
    """The mean of the losses, and each."""
    return f"{statistics.mean(losses):.3f} ({', '.join(f'{loss:.3f}' for loss in losses)})" if losses else ""


def main() -> None:
    """Train what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("other")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="laptop-hybrid-tiny")
    parser.add_argument("--start", type=int, default=1000)
    parser.add_argument("--steps", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    texts = {"same": given.corpus, "other": given.other}
    columns = [(name, steps) for name in texts for steps in given.steps]
    starts = [started(given.recipe, given.corpus, given.out, given.start, seed) for seed in range(given.seeds)]
    before = {name: statistics.mean(held_out(start, corpus) for start in starts) for name, corpus in texts.items()}
    print("| rate | " + " | ".join(f"{name} text, {steps:,} steps" for name, steps in columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    print("| the start | " + " | ".join(f"{before[name]:.3f}" for name, _ in columns) + " |", flush=True)
    for factor in FACTORS:
        cells = []
        for name, steps in columns:
            path = given.out / f"{name}-{given.start}-{steps}-{factor:g}"
            losses = (
                further(given.recipe, start, texts[name], path, steps, factor, 100 + seed)
                for seed, start in enumerate(starts)
            )
            cells.append(cell([loss for loss in losses if loss is not None]))
        print(f"| {factor:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
