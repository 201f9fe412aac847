"""What it is worth that a table of tokens begins with vectors by what stands beside each token, in place of chance.

    python benchmarks/token_vectors.py CORPUS OUT [--recipes NAME ...] [--tokens 500000 4000000] [--seeds 3]
        [--ways chance neighbours ...]

Each recipe is trained on CORPUS for each number of --tokens in each of the --ways, from each seed; the table has the
mean held-out loss of its first objective, in nats, and the seeds' standard deviation. `wide` is chance again, with
numbers as large as the vectors', and in `exchanged` each token has the vector of another one, drawn by lot: what is
left of a gain with these is not what the text says of the tokens. Finished trainings are not repeated; several of these
commands may share OUT.
"""

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kept_trainings import measured

from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.training import initial_weights

KEY = "training.token_vectors"
WAYS: dict[str, dict[str, Any]] = {
    "chance": {KEY: None},
    "neighbours": {KEY: {"scale": 0.3}},
    "wide": {KEY: None, "model.embedding.initial": {"kind": "normal", "scale": 0.3}},
    "exchanged": {KEY: {"scale": 0.3}},
}
"""The changes of a recipe, by the name of the way."""


@contextmanager
def exchanged() -> Iterator[None]:
    """Every token that has a vector gets that of another one, drawn by lot."""
    original = initial_weights.neighbour_vectors

    def shuffled(*arguments: Any) -> Any:
        vectors = original(*arguments)
        known = vectors.any(axis=1).nonzero()[0]
        vectors[known] = vectors[np.random.default_rng(0).permutation(known)]
        return vectors

    initial_weights.neighbour_vectors = shuffled
    try:
        yield
    finally:
        initial_weights.neighbour_vectors = original


def loss(name: str, way: str, corpus: str, out: Path, tokens: int, seed: int) -> float | None:
    """The held-out loss of one training; None: another process is doing it."""
    recipe, path = load_recipe(name, WAYS[way]), out / f"{name}-{way}-{tokens}" / f"seed-{seed}"
    if way != "exchanged":
        figures = measured(recipe, corpus, path, Budget(tokens=tokens), seed)
    else:
        with exchanged():
            figures = measured(recipe, corpus, path, Budget(tokens=tokens), seed)
    return None if figures is None else figures["loss"]


def cell(losses: list[float]) -> str:
    """The mean of the losses, and their deviation."""
    if len(losses) < 2:
        return "".join(f"{each:.3f}" for each in losses)
    return f"{statistics.mean(losses):.3f} ± {statistics.stdev(losses):.3f}"


def main() -> None:
    """Train what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipes", nargs="+", default=["laptop-hybrid-tiny", "laptop-decoder-tiny"])
    parser.add_argument("--tokens", type=int, nargs="+", default=[500_000, 4_000_000])
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=["chance", "neighbours"])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| | " + " | ".join(given.ways) + " |")
    print("|---" * (1 + len(given.ways)) + "|", flush=True)
    for name in given.recipes:
        for tokens in given.tokens:
            cells = []
            for way in given.ways:
                found = [loss(name, way, given.corpus, given.out, tokens, seed) for seed in range(given.seeds)]
                cells.append(cell([each for each in found if each is not None]))
            print(f"| {name}, {tokens:,} tokens | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
