"""Overfitting test of recipes: the loss on 64 rows of a corpus, as a share of the first loss.

Every step sees all rows, whose masks and other draws are fixed. Dropout is off; all else is the recipe's own, with the
schedule of the learning rate fitted to 500 steps. A recipe is done once its loss is below a tenth of the first step's.

    python benchmarks/overfit.py CORPUS [RECIPE ...] [--rows 64] [--length 64] [--steps 500]

Without names, all recipes whose names end in -tiny are tested, except those for pairs of texts.
"""

import argparse
import time

import torch

from bakeoff.corpus.store import Corpus
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.machine.capacity import processor_name
from bakeoff.models.dropouts import with_dropout
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

GOAL = 0.1


def overfit(recipe: Recipe, corpus: Corpus, rows: int, steps: int) -> tuple[int, float, float]:
    """The number of steps made, the first loss and the last loss in nats."""
    device = resolve_device("cpu")
    precision = resolve_precision(recipe.training.precision, device)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    unit = Pretraining(recipe, module, Placement(device, precision))
    parts = make_batches(recipe, module, corpus, seed=0).fixed(rows)
    first = last = float("nan")
    for step in range(steps):
        means = optimize(unit, parts, step)
        last = sum(weight * float(means[name]) for name, weight in module.weights.items())
        first = last if step == 0 else first
        if last < GOAL * first:
            return step + 1, first, last
    return steps, first, last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("recipes", nargs="*")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_intermixed_args()
    corpus = Corpus.open(options.corpus)
    print(f"{processor_name()}, {torch.get_num_threads()} threads; {options.rows} rows of {options.length} tokens")
    print("| recipe | first loss | last loss | share | steps | seconds |\n|---|---|---|---|---|---|")
    for name in options.recipes or [
        name for name in recipe_names() if name.endswith("-tiny") and not load_recipe(name).input.parallel
    ]:
        recipe = load_recipe(name, {"input.length": options.length, "training.batch": options.rows})
        recipe = recipe.changed({"model": with_dropout(recipe.model, 0.0).model_dump(mode="json")})
        began = time.perf_counter()
        steps, first, last = overfit(recipe.fitted(options.steps), corpus, options.rows, options.steps)
        seconds = time.perf_counter() - began
        print(f"| {name} | {first:.2f} | {last:.2f} | {last / first:.1%} | {steps} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
