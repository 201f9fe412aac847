"""A training of a fine-tuning in figures: what it differs in, its best evaluation on dev, its state in a checkpoint."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field
from torch import Tensor

from bakeoff.config import Record
from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.task import Task
from bakeoff.tensors import load_tensors
from bakeoff.trainer.checkpoint import read_state

BEST, CHOSEN = "best", "chosen"
"""The names, in a checkpoint, of the best evaluation of its training and of all trainings before it."""


class DevEvaluation(NamedTuple):
    """The scores and the loss on dev after some steps."""

    step: int
    """Optimizer steps before the evaluation."""
    scores: dict[str, float]
    """All metrics on dev."""
    loss: float
    """The task's mean loss on dev."""

    def rank(self, task: Task) -> tuple[float, float]:
        """The key that compares evaluations, greater for a better one: the metric, then the loss."""
        value = self.scores[task.metric]
        return -value if task.metric in task.config.lower_is_better else value, -self.loss

    def perfect(self, task: Task) -> bool:
        """Whether the metric has its best possible value."""
        return self.scores[task.metric] == (0 if task.metric in task.config.lower_is_better else 1)


class FittingTrial(NamedTuple):
    """The settings in which the trainings of one fine-tuning differ."""

    learning_rate: float
    """The learning rate at the end of the warm-up."""
    epochs: int
    """The most passes over train."""


@dataclass
class Fit:
    """The best state of a training: its evaluation on dev and its weights."""

    trial: FittingTrial
    """The learning rate and the epochs of the training."""
    steps: int
    """Optimizer steps of the training so far."""
    best: DevEvaluation
    """The best evaluation on dev."""
    weights: dict[str, Tensor]
    """The weights at the best evaluation on dev."""


class RecordedEvaluation(Record):
    """A training's best evaluation on dev, without its weights."""

    learning_rate: float
    """The learning rate of the training."""
    epochs: int = Field(ge=1)
    """The most passes over train."""
    steps: int = Field(ge=1)
    """Optimizer steps of the training so far."""
    step: int = Field(ge=1)
    """Optimizer steps before the best evaluation."""
    scores: dict[str, float]
    """All metrics on dev."""
    loss: float
    """The task's mean loss on dev."""


class FittingState(Record):
    """What the state.json of a checkpoint holds of a fine-tuning beside the position."""

    since_best: int = Field(ge=0)
    """The number of evaluations on dev since the best one."""
    best: RecordedEvaluation | None
    """The best evaluation of the interrupted training; None: there is none yet."""
    chosen: RecordedEvaluation | None
    """The best evaluation of all trainings before the interrupted one; None: there is none."""
    trials: list[dict[str, Any]]
    """The results of the trainings before the interrupted one."""
    steps_before: int = Field(ge=0)
    """Optimizer steps of the trainings before the interrupted one."""


class Ended(NamedTuple):
    """The trainings of a fine-tuning that have ended."""

    trials: list[TrialResult]
    """The result of each of these trainings."""
    best: Fit | None
    """The best training; None: there is none yet."""
    steps: int
    """Optimizer steps of all of them."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint of a later training holds of them, see `FittingState`."""
        trials = [each.model_dump(mode="json") for each in self.trials]
        return {CHOSEN: recorded(self.best), "trials": trials, "steps_before": self.steps}

    def and_then(self, trial: TrialResult, best: Fit | None, steps: int, task: Task) -> "Ended":
        """These trainings and one more, with its best evaluation and its steps; None: it diverged."""
        kept = self.best
        if best is not None and (kept is None or best.best.rank(task) > kept.best.rank(task)):
            kept = best
        return Ended([*self.trials, trial], kept, self.steps + steps)


NONE_ENDED = Ended([], None, 0)


def ended_before(checkpoint: Path) -> Ended:
    """The trainings that had ended before the interrupted one of a checkpoint.

    Raises:
        UserError: the checkpoint is damaged.
    """
    where = f"{checkpoint}/state.json"
    state = FittingState.check(read_state(checkpoint), where)
    trials = [TrialResult.parse(each, where) for each in state["trials"]]
    return Ended(trials, fit_of(checkpoint, CHOSEN, state), state["steps_before"])


def recorded(fit: Fit | None) -> dict[str, Any] | None:
    """The best evaluation of a training for state.json, see `RecordedEvaluation`."""
    return None if fit is None else {**fit.trial._asdict(), **fit.best._asdict(), "steps": fit.steps}


def fit_of(checkpoint: Path, name: str, state: dict[str, Any]) -> Fit | None:
    """The best evaluation of a name in a checkpoint, with its weights.

    Raises:
        UserError: the weights are damaged.
    """
    if state[name] is None:
        return None
    evaluation = dict(state[name])
    trial = FittingTrial(evaluation.pop("learning_rate"), evaluation.pop("epochs"))
    return Fit(
        trial, evaluation.pop("steps"), DevEvaluation(**evaluation), load_tensors(checkpoint / f"{name}.safetensors")
    )
