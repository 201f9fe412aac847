"""The scores of a fine-tuning, from its results.json."""

from pathlib import Path
from typing import Any

from pydantic import Field

from bakeoff.comparison.results import FinetuningScore
from bakeoff.comparison.running.planned import PlannedFinetuning
from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.json_files import read_json

MEASURED = ("learning_rate", "transferred_tensors", "best_epoch", "epochs", "seconds")
"""The figures of a fine-tuning's results.json that stand in the comparison's as they are."""


class DevAndTest(Record):
    """The metrics of a fine-tuned model on dev and on test."""

    dev: dict[str, float]
    """Metrics on dev, by name; shares are fractions."""
    test: dict[str, float]
    """Metrics on test, by name; shares are fractions."""


class FinetuneOutcome(Record):
    """The part of a fine-tuning's results.json that a comparison reads; all other keys are ignored."""

    scores: DevAndTest
    """The metrics of the weights that did best on dev."""
    learning_rate: float
    """The learning rate, chosen on dev where the plan gives several."""
    trials: list[dict[str, Any]] = Field(default=[])
    """The settings that were tried, each with its learning rate."""
    transferred_tensors: int
    """Number of tensors taken from the pre-trained run; 0 from scratch."""
    best_epoch: float | None
    """The epoch whose weights did best on dev, and were tested."""
    epochs: float | None = None
    """The number of epochs trained until the end, or until early stopping."""
    default_epochs: list[int] = Field(default=[])
    """The numbers of epochs that were raised for `least_steps`."""
    labels: dict[str, dict[str, float]] = Field(default={})
    """The scores of each class, label or type of spans on test, see `LabelScore`."""
    cut: dict[str, dict[str, int | None]] = Field(default={})
    """The rows of each split of which a part was not read, see `CutRows`."""
    seconds: float
    """Seconds of training, over all trials of the fine-tuning."""


def read_score(training: PlannedFinetuning, metric: str, root: Path) -> FinetuningScore:
    """The scores of a finished fine-tuning, read from its results.json.

    Raises:
        UserError: the file is damaged or lacks the metric.
    """
    path = training.directory / "results.json"
    outcome = FinetuneOutcome.check(read_json(path), str(path))
    for split in ("dev", "test"):
        if metric not in outcome["scores"][split]:
            raise UserError(f"{path}: scores.{split}: has no {metric}; delete {training.directory}, compare again")
    values = {
        "task": training.task.name,
        "seed": training.seed,
        "finetune_seed": training.finetune_seed,
        "initialisation": training.initialisation,
        "tried": sorted({each["learning_rate"] for each in outcome.get("trials", [])}),
        "dev": outcome["scores"]["dev"],
        "test": outcome["scores"]["test"],
        "predictions": str((training.directory / "predictions.jsonl").relative_to(root)),
        **{name: outcome.get(name) for name in MEASURED},
        **{name: outcome[name] for name in ("cut", "default_epochs", "labels") if outcome.get(name)},
    }
    return FinetuningScore.parse(values, str(path))
