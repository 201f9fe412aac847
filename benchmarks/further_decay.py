"""How long further training on a small text should remember: the weight decay of a model that is trained already.

    python benchmarks/further_decay.py RUN... --corpus OTHER --out DIR [--epochs 4]

Each RUN, whose decay follows passes over its text, is trained further on OTHER, which has its tokenizer, by its own
recipe but for the decay. The table has the held-out loss on OTHER and on the text of the RUN, which may be forgotten,
as means over the runs, and of each. Finished trainings are not repeated.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from further_training import cell

import bakeoff
from bakeoff.corpus.mixture import open_corpus
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.decay_by_passes import DecayByPasses
from bakeoff.runs.run import Run
from bakeoff.training.initial_weights import Start
from bakeoff.tuning.ranges import DECAY


def decays(start: Run, corpus: str) -> dict[str, Any]:
    """Weight decays of the further training, by the text whose passes they follow."""
    passes = Start(run=start.path).recipe().training.optimizer.weight_decay
    assert isinstance(passes, DecayByPasses)
    first, new = (open_corpus(each).train_tokens for each in (start.environment["corpus"]["path"], corpus))
    share = new / (first + new)
    return {
        "the new text": {"passes": passes.passes * share},
        "both (the rule)": {"passes": passes.passes},
        "four times as many passes over both": {"passes": 4 * passes.passes},
        "no decay": 0.0,
    }


def train(run: Run, corpus: str, out: Path, epochs: float, decay: Any, seed: int) -> None:
    """Train a run further with a decay, unless this is done already."""
    start = Start(run=run.path)
    recipe = start.recipe().changed({DECAY: decay})
    bakeoff.pretrain(recipe, corpus, out, start=start, seed=seed, budget=Budget(epochs=epochs), resume=True)


def losses(paths: Sequence[Path], corpora: Sequence[str]) -> str:
    """The runs' losses on all of the held-out text of the corpus of each."""
    return cell([float(bakeoff.evaluate(path, corpus=each)["loss"]) for path, each in zip(paths, corpora, strict=True)])


def main() -> None:
    """Train what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=4)
    given = parser.parse_args()
    torch.set_num_threads(1)
    starts = [Run.open_finished(path) for path in given.runs]
    old = [str(start.environment["corpus"]["path"]) for start in starts]
    new = [given.corpus] * len(starts)

    def row(name: str, paths: Sequence[Path]) -> None:
        print(f"| {name} | {losses(paths, new)} | {losses(paths, old)} |", flush=True)

    print("| passes over | loss on the new text | on the start's |")
    print("|---|---|---|")
    row("(the start)", given.runs)
    of_start = [decays(start, given.corpus) for start in starts]
    for name in of_start[0]:
        paths = [given.out / f"{name}-{number}" for number in range(len(starts))]
        for number, (start, path) in enumerate(zip(starts, paths, strict=True)):
            train(start, given.corpus, path, given.epochs, of_start[number][name], 100 + number)
        row(name, paths)


if __name__ == "__main__":
    main()
