"""An ensemble distilled into one model beside other uses of the same operations.

    python benchmarks/distill.py CORPUS OUT [--recipe laptop-hybrid-tiny] [--epochs 16] [--members 4] [--seeds 1]
        [--dropout 0.2] [--settings 0.9:1 0.5:2] [--only NAME...]

For each seed: members, each trained for the same number of epochs; their mean probabilities; a student of the same size
that learns from all of them for as many epochs; and, with the operations of all of these (the members' training, the
student's, the teachers' passes), one model, as the recipe ships and with dropout, of which the best weights on the way
are kept. All are measured on the same held-out rows with the same masks. Finished trainings are not repeated, stopped
ones go on; --only trains a part of them. Each process uses one thread.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

import bakeoff
from bakeoff.corpus.mixture import open_corpus
from bakeoff.objectives.heads import Head
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.training.stages import make_batches

ROWS = 4096
"""The most held-out rows that are measured."""


def trained(
    recipe: str, corpus: str, path: Path, budget: Budget, seed: int, changes: Mapping[str, Any] = MappingProxyType({})
) -> Run:
    """The run of one training, made or gone on with where it is not finished."""
    if not (path / "summary.json").is_file():
        bakeoff.pretrain(
            load_recipe(recipe, changes), corpus, path, seed=seed, budget=budget, resume=True, progress=False
        )
    return Run(path)


def held_out(runs: Sequence[Run], corpus: str) -> float:
    """The held-out loss in nats of the mean of some runs' probabilities."""
    opened, modules = open_corpus(corpus), [run.load() for run in runs]
    (objective,) = modules[0].objectives

    def score(head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
        return head.log_probabilities(rows, table).gather(-1, labels[:, None])[:, 0]

    rows = make_batches(runs[0].recipe, modules[0], opened, seed=0, split="validation").fixed(ROWS)
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in rows:
            each = torch.stack([module(batch, score=score)[0][objective.name] for module in modules])
            total -= float(each.double().exp().mean(0).log().sum())
            count += each.shape[1]
    return total / count


class Experiment:
    """The trainings of one seed."""

    def __init__(self, given: argparse.Namespace, seed: int) -> None:
        self.given, self.seed = given, seed
        self.members = [given.members * seed + index for index in range(given.members)]

    def path(self, name: str, seed: int) -> Path:
        """The place of a training."""
        folder: Path = self.given.out
        return folder / f"{name}-{seed}"

    def member(self) -> list[Run]:
        """The members."""
        budget = Budget(epochs=self.given.epochs)
        return [trained(self.given.recipe, self.given.corpus, self.path("member", s), budget, s) for s in self.members]

    def student(self, weight: float = 0.5, temperature: float = 1.0) -> Run:
        """The student of all members."""
        distillation = {"teachers": [str(run.path) for run in self.member()]}
        settings = {"weight": weight, "temperature": temperature}
        name = "student" if settings == {"weight": 0.5, "temperature": 1.0} else f"student-{weight:g}-{temperature:g}"
        budget, place = Budget(epochs=self.given.epochs), self.path(name, self.seed)
        return trained(
            self.given.recipe,
            self.given.corpus,
            place,
            budget,
            1000 + self.seed,
            {"training.distillation": distillation | settings},
        )

    def operations(self) -> float:
        """The operations of the members, the student and the teachers' passes."""
        return sum(float(run.summary["flops"]) for run in [*self.member(), self.student()])

    def longer(self, dropout: float | None = None) -> Run:
        """One model with the operations of all, and the best of its weights; with dropout where it is given."""
        name = "longer" if dropout is None else "regularised"
        changes: dict[str, Any] = {"training.early_stopping": {"patience": 1000, "keep_best": True}}
        changes |= {} if dropout is None else {"model.dropout": dropout}
        flops, seed = Budget(flops=self.operations()), 2000 + self.seed
        return trained(self.given.recipe, self.given.corpus, self.path(name, self.seed), flops, seed, changes)

    def regularised(self) -> Run:
        """The same with dropout."""
        return self.longer(self.given.dropout)

    def figures(self) -> dict[str, tuple[float, float, float]]:
        """Held-out loss, operations and processor seconds by name."""

        def of(*runs: Run) -> tuple[float, float]:
            return tuple(sum(float(run.summary[key]) for run in runs) for key in ("flops", "work_seconds"))  # type: ignore[return-value]

        members, student, corpus = self.member(), self.student(), self.given.corpus
        lines = {
            "one member": (statistics.mean(held_out([run], corpus) for run in members), *of(members[0])),
            "the members' mean probabilities": (held_out(members, corpus), *of(*members)),
            "distilled from them": (held_out([student], corpus), *of(*members, student)),
            "one model, as many operations": (held_out([self.longer()], corpus), *of(self.longer())),
            "the same with dropout": (held_out([self.regularised()], corpus), *of(self.regularised())),
        }
        for setting in self.given.settings:
            run = self.student(*map(float, setting.split(":")))
            lines[f"distilled, weight:temperature {setting}"] = (held_out([run], corpus), *of(*members, run))
        return lines


def main() -> None:
    """Train what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--recipe", default="laptop-hybrid-tiny")
    parser.add_argument("--epochs", type=float, default=16)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", choices=["member", "student", "longer", "regularised"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    experiments = [Experiment(given, seed) for seed in range(given.seeds)]
    if given.only:
        for experiment in experiments:
            for name in given.only:
                getattr(experiment, name)()
        return
    figures = [experiment.figures() for experiment in experiments]
    print("| what | held-out loss, each seed | mean | operations | processor seconds |\n|---|---|---|---|---|")
    for name in figures[0]:
        losses, flops, seconds = zip(*(each[name] for each in figures), strict=True)
        shown = ", ".join(f"{loss:.3f}" for loss in losses)
        mean, work = statistics.mean(losses), statistics.mean(seconds)
        print(f"| {name} | {shown} | {mean:.3f} | {statistics.mean(flops):.2g} | {work:.0f} |")


if __name__ == "__main__":
    main()
