"""The time that a checkpoint takes from a training: written before the next step, and beside the steps, in turns.

python benchmarks/checkpoint_pause.py CORPUS [RECIPE] [--rounds N]
"""

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from unittest.mock import patch

import torch

from bakeoff import pretrain
from bakeoff.recipe_files import load_recipe
from bakeoff.trainer import checkpoint
from bakeoff.trainer.checkpoint_writer import CheckpointWriter
from bakeoff.trainer.save_plan import SavePlan

STEPS, SAVED = 24, 4
"""Steps of a training, and the step after which it is saved."""


def intervals(recipe, corpus, room):
    """Seconds from each step to the next; seconds that the writing takes; bytes of the checkpoint."""
    ends, written, asked = [], [], []
    own = CheckpointWriter.begin

    def begin(writer, write):
        def measured():
            began = time.perf_counter()
            write()
            written.append(time.perf_counter() - began)

        own(writer, measured)

    def due(*_):
        asked.append(0)
        return len(asked) == SAVED

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(checkpoint, "ROOM", room),
        patch.object(CheckpointWriter, "begin", begin),
        patch.object(SavePlan, "due", due),
    ):
        out = Path(folder) / "run"
        pretrain(
            recipe,
            corpus,
            out,
            device="cpu",
            threads=1,
            until=STEPS,
            progress=False,
            watch=lambda _: ends.append(time.perf_counter()),
        )
        size = sum(path.stat().st_size for path in (out / "checkpoints" / f"step-{SAVED:08d}").iterdir())
    return [after - before for before, after in pairwise(ends)], written[0], size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("recipe", nargs="?", default="gpt2-base")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    changes = {"training.batch": 4, "training.budget": {"steps": 1000}, "training.compile": False}
    recipe = load_recipe(given.recipe, {**changes, "input.length": 64, "training.validation_examples": 4})
    print("mode    step s  step with the save s  writing s  24 steps s  checkpoint GB")
    for _ in range(given.rounds):
        for mode, room in (("before", 1e12), ("beside", 2)):
            times, writing, size = intervals(recipe, given.corpus, room)
            usual = median(times[: SAVED - 1])
            print(
                f"{mode}  {usual:6.2f}  {times[SAVED - 1]:20.2f}  {writing:9.2f}  {sum(times):10.2f}  {size / 1e9:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
