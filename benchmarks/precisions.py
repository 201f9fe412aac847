"""Held-out loss after trainings in float32 and in bfloat16, by kernels in C or by torch, beside what seeds make of it.

    python benchmarks/precisions.py CORPUS OUT [--recipes laptop-encoder-tiny ...] [--tokens 300k] [--seeds 3]
        [--ways float32 ...]

Every recipe is trained on CORPUS in every way with the same seeds, rows, masks and tokens, one thread, and measured on
all held-out rows. The table has means and standard deviations over seeds, the means of the differences between the
first training of a seed and the others with their standard errors, and the processor time. A loss that rounding makes
worse shows as differences beyond their standard error. Finished trainings in OUT are not repeated.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

import torch

import bakeoff
from bakeoff.ops.cpu.compiled_kernels import VARIABLE, kernels
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run

LAPTOP = ("laptop-encoder-tiny", "laptop-conv-tiny", "laptop-hybrid-tiny", "laptop-decoder-tiny")
WAYS = {"float32": ("float32", "1"), "bfloat16 by torch": ("bfloat16", "0"), "bfloat16 by kernels": ("bfloat16", "1")}
"""Ways to train: the precision, and the value of the variable that switches kernels in C off and on."""


def measured(recipe: str, way: str, seed: int, corpus: str, out: Path, budget: Budget) -> tuple[float, float]:
    """Held-out loss in nats and processor seconds of one training."""
    precision, os.environ[VARIABLE] = WAYS[way]
    kernels.cache_clear()
    path = out / f"{recipe}-{way.replace(' ', '-')}-{seed}.json"
    if not path.is_file():
        folder = path.with_suffix("")
        changed = load_recipe(recipe, {"training.precision": precision})
        run = bakeoff.pretrain(changed, corpus, folder, seed=seed, budget=budget, resume=True, progress=False)
        loss = bakeoff.evaluate(run.path, corpus=corpus)["loss"]
        path.write_text(json.dumps([loss, Run(folder).summary["work_seconds"]]))
    loss, seconds = json.loads(path.read_text())
    return float(loss), float(seconds)


def main() -> None:
    """Train what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipes", nargs="+", default=LAPTOP)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--tokens", default="300k")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    budget = Budget.parse_text(f"tokens={options.tokens}")
    heads = ["", *options.ways, f"differences from {options.ways[0]}", "seconds"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for recipe in options.recipes:
        found = {
            way: [measured(recipe, way, seed, options.corpus, options.out, budget) for seed in range(options.seeds)]
            for way in options.ways
        }
        first, *others = losses = [[loss for loss, _ in each] for each in found.values()]
        cells = [f"{statistics.fmean(each):.3f} ± {statistics.stdev(each):.3f}" for each in losses]
        differences = ", ".join(_difference(first, each) for each in others)
        seconds = ", ".join(f"{statistics.fmean(second for _, second in each):.0f}" for each in found.values())
        print(f"| {recipe} | {' | '.join(cells)} | {differences} | {seconds} |", flush=True)


def _difference(before: list[float], after: list[float]) -> str:
    apart = [new - old for old, new in zip(before, after, strict=True)]
    return f"{statistics.fmean(apart):+.4f} ± {statistics.stdev(apart) / len(apart) ** 0.5:.4f}"


if __name__ == "__main__":
    main()
