"""Held-out loss of recipes after trainings in float32 and in bfloat16, beside what seeds make of it.

    python benchmarks/precisions.py CORPUS OUT [--recipes laptop-encoder-tiny ...] [--tokens 300k] [--seeds 3]

Every recipe is trained on CORPUS in both precisions with the same seeds, rows, masks and tokens, one thread, and
measured on all held-out rows. The table has means and standard deviations over seeds, the mean of the differences
between the two trainings of a seed with its standard error, and the processor time. A loss that rounding makes worse
shows as differences beyond their standard error. Finished trainings in OUT are not repeated.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch

import bakeoff
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run

LAPTOP = ("laptop-encoder-tiny", "laptop-conv-tiny", "laptop-hybrid-tiny", "laptop-decoder-tiny")
PRECISIONS = ("float32", "bfloat16")


def measured(recipe: str, precision: str, seed: int, corpus: str, out: Path, budget: Budget) -> tuple[float, float]:
    """Held-out loss in nats and processor seconds of one training."""
    path = out / f"{recipe}-{precision}-{seed}.json"
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
    parser.add_argument("--tokens", default="300k")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    budget = Budget.parse_text(f"tokens={options.tokens}")
    print("| | float32 | bfloat16 | difference | seconds |\n|---|---|---|---|---|")
    for recipe in options.recipes:
        found = {
            precision: [
                measured(recipe, precision, seed, options.corpus, options.out, budget) for seed in range(options.seeds)
            ]
            for precision in PRECISIONS
        }
        losses = {precision: [loss for loss, _ in each] for precision, each in found.items()}
        cells = [f"{statistics.fmean(each):.3f} ± {statistics.stdev(each):.3f}" for each in losses.values()]
        apart = [low - high for high, low in zip(*losses.values(), strict=True)]
        error = statistics.stdev(apart) / len(apart) ** 0.5
        seconds = [f"{statistics.fmean(second for _, second in each):.0f}" for each in found.values()]
        difference = f"{statistics.fmean(apart):+.4f} ± {error:.4f}"
        print(f"| {recipe} | {' | '.join(cells)} | {difference} | {', '.join(seconds)} |", flush=True)


if __name__ == "__main__":
    main()
