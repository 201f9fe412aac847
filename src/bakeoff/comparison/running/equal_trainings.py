"""Trainings of a comparison that have the same outcome, of which one is done and the others are copies."""

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bakeoff.comparison.running.planned_training import SCRATCH, PlannedTraining
from bakeoff.display.progress import Shown
from bakeoff.durable import remove
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.unfinished import unfinished_folder

_READ_OF_INPUT = ("length", "start_last")
_READ_OF_TRAINING = ("precision", "activation_checkpointing")


def without_pretraining(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What a fine-tuning with random weights reads of a recipe: the model, the length, and what objectives there are.

    How many tokens an objective hides and what stands in their place, the format of rows, and the optimizer matter in
    pre-training alone. Of an objective that writes all is kept, because texts are written as it has them.
    """
    return {
        "model": recipe.get("model"),
        "input": _some(recipe.get("input"), _READ_OF_INPUT),
        "training": _some(recipe.get("training"), _READ_OF_TRAINING),
        "objective": [_read_of_objective(part) for part in recipe.get("objective") or []],
    }


def in_settings(read: Mapping[str, Any]) -> dict[str, Any]:
    """What `without_pretraining` gives, beside the model, as it is kept with a training: the kinds of objectives alone.

    Settings that objectives gain in later versions are then no change.
    """
    kinds = [part["kind"] for part in read["objective"]]
    return {SCRATCH: {"input": read["input"], "training": read["training"], "objectives": kinds}}


def _some(values: Mapping[str, Any] | None, keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in (values or {}).items() if key in keys}


def _read_of_objective(part: Mapping[str, Any]) -> dict[str, Any]:
    config = OBJECTIVES[part["kind"]]
    if config.generates:
        return dict(part)
    return {**_some(part, ("kind", *sorted(config.of_head))), "trained to the end": part.get("weight") != 0}


def first_of_equals(trainings: Sequence[PlannedTraining], without: Collection[int] = ()) -> dict[int, int]:
    """The index of the training that is done in place of another with the same outcome, by the index of the other.

    It is one that has finished already, or else the first.

    Args:
        trainings: all trainings.
        without: the indices of those that are not done.
    """
    firsts: dict[str, int] = {}
    done = [index for index in range(len(trainings)) if index not in without]
    order = sorted(done, key=lambda index: not trainings[index].finished)
    found = {index: firsts.setdefault(_decisive(trainings[index]), index) for index in order}
    return {index: first for index, first in sorted(found.items()) if first != index}


def same_outcome(training: PlannedTraining, other: PlannedTraining) -> bool:
    """Whether two trainings have the same outcome, on one machine to the last bit."""
    return _decisive(training) == _decisive(other)


def _decisive(training: PlannedTraining) -> str:
    return json.dumps([type(training).__name__, training.decisive], sort_keys=True)


class CopiedTraining(Job):
    """A training that another recipe of the comparison has done already."""

    source: Path
    """Its directory there."""

    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Copy the finished training, whole or not at all."""
        aside = unfinished_folder(self.out)
        remove(aside)
        shutil.copytree(self.source, aside, ignore=shutil.ignore_patterns("checkpoints"))
        aside.rename(self.out)
        return Outcome()
