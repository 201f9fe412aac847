"""Results of a fine-tuning, as in results.json."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.scores.label_scores import LabelScore


class TrialResult(Config):
    """The result of one training of a fine-tuning."""

    learning_rate: float
    """The training's learning rate."""
    epochs: int
    """The number of epochs for which the training was planned."""
    score: float | None
    """The best score on dev, by the metric; null: the loss was not a number any more."""
    seconds: float
    """Seconds of the training, evaluations on dev included."""


class FinetuneResult(Config):
    """The results of a fine-tuning; results.json."""

    path: Path = Field(default=Path(), exclude=True)
    """The directory of the run."""
    kind: str = "classification"
    """The kind of the task, such as classification."""
    task: str
    """The name of the task in results."""
    metric: str
    """The metric by which dev chose epochs and learning rates."""
    recipe: str
    """The name of the recipe."""
    source: str | None
    """The pre-trained run; null: the weights were random."""
    seed: int
    """The seed of random weights, order and dropout."""
    scores: dict[str, dict[str, float]]
    """All metrics on dev and on test, shares as fractions."""
    labels: dict[str, LabelScore] = Field(default={})
    """Precision, recall and F1 on test of each class, label or type of spans; empty for tasks without these."""
    simplest: dict[str, float]
    """The metrics on test of predictions without a model, such as the most frequent class of train."""
    transferred_tensors: int
    """The number of tensors that came from the pre-training."""
    total_tensors: int
    """The number of tensors of the model and its head."""
    parameters: int
    """The number of parameters of the model and its head."""
    learning_rate: float
    """The learning rate, chosen on dev where several were tried."""
    epochs: float
    """The number of epochs trained until the end, or until early stopping."""
    planned_epochs: int | None = None
    """The number of epochs for which the training was planned; null in results of older versions."""
    best_epoch: float
    """The epoch, or part of one, with the best score on dev, whose weights were kept."""
    seconds: float
    """Seconds of all trainings and evaluations together."""
    trials: list[TrialResult] = Field(default=[])
    """The result of each training, where several learning rates or numbers of epochs were tried."""
    classes: list[str]
    """Names of the classes, or tags, sorted; empty where there are none."""
    rows: dict[str, int]
    """The number of rows of train, dev and test."""
    cut: dict[str, CutRows] = Field(default={})
    """The rows of train, dev and test of which a part is not read; empty in results of older versions."""
    default_epochs: list[int] = Field(default=[])
    """The numbers of epochs in whose place more were trained, for the sake of `least_steps`; empty: there were none."""
    notes: list[str]
    """Notes to readers of the numbers."""

    read_before: ClassVar[tuple[str, ...]] = ("majority",)

    @model_validator(mode="before")
    @classmethod
    def _of_older_runs(cls, values: Any) -> Any:
        """Results of older runs, in which the accuracy of the most frequent class stood alone, in the present form."""
        if isinstance(values, dict) and "majority" in values and "simplest" not in values:
            values = {**values, "simplest": {"accuracy": values["majority"]}}
            del values["majority"]
        return values
