"""What a fine-tuning achieved, as results.json has it."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.tasks.scores.label_scores import LabelScore


class TrialResult(Config):
    """The result of one training of a fine-tuning."""

    learning_rate: float
    """The training's learning rate."""
    epochs: int
    """The epochs that it was planned for."""
    score: float | None
    """The metric on dev at its best; null: the loss was not a number any more."""
    seconds: float
    """Time spent, looks at dev included."""


class FinetuneResult(Config):
    """What a fine-tuning achieved; results.json."""

    path: Path = Field(default=Path(), exclude=True)
    """The run's directory."""
    kind: str = "classification"
    """The kind of the task, such as classification."""
    task: str
    """The task's name."""
    metric: str
    """The metric by which dev chose epochs and learning rates."""
    recipe: str
    """The recipe's name."""
    source: str | None
    """The pre-trained run; null: the weights were random."""
    seed: int
    """Seed of the random weights, the order and the dropout."""
    scores: dict[str, dict[str, float]]
    """All metrics on dev and on test, shares as fractions."""
    labels: dict[str, LabelScore] = Field(default={})
    """Precision, recall and F1 on test of each class, label or type of spans; empty for tasks without these."""
    simplest: dict[str, float]
    """The metrics on test of answers without a model, such as the most frequent class of train."""
    transferred_tensors: int
    """How many tensors came from the pre-training."""
    total_tensors: int
    """How many tensors the model and its head have."""
    parameters: int
    """How many numbers they hold."""
    learning_rate: float
    """The learning rate, chosen on dev where several were tried."""
    epochs: float
    """Epochs trained until it stopped."""
    best_epoch: float
    """The epoch that did best on dev, whose weights were kept."""
    seconds: float
    """Time spent, all trainings and evaluations together."""
    trials: list[TrialResult] = Field(default=[])
    """The result of each training, where several learning rates or numbers of epochs were tried."""
    classes: list[str]
    """Names of the classes, or tags, sorted; none where there are no such."""
    rows: dict[str, int]
    """Rows of train, dev and test."""
    notes: list[str]
    """What a reader of the numbers must know."""

    read_before: ClassVar[tuple[str, ...]] = ("majority",)

    @model_validator(mode="before")
    @classmethod
    def _of_older_runs(cls, values: Any) -> Any:
        """Until other tasks than classification were there, the accuracy of the most frequent class stood alone."""
        if isinstance(values, dict) and "majority" in values and "simplest" not in values:
            values = {**values, "simplest": {"accuracy": values["majority"]}}
            del values["majority"]
        return values
