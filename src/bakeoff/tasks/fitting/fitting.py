"""The training of a head: steps, evaluations on dev, early stopping."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import Diverged, Interrupted
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.schedules import SCHEDULES
from bakeoff.randomness.seeding import seed_torch
from bakeoff.resources.device import Placement, autocast
from bakeoff.tasks.answers.answering import answers_of
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.depths import freeze, with_rates
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.items import Items
from bakeoff.tasks.rows.batches import shuffled_batches
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.task import Task
from bakeoff.training.progress import TrainingProgress
from bakeoff.training.step import step_seed

FIRST_SAVE = 60.0
"""Seconds until a training is saved for the first time, where no look at dev comes before."""
SAVED_BETWEEN_LOOKS = 600.0
"""Seconds between further checkpoints where looks at dev are far apart."""


class TaskSplit(NamedTuple):
    """A split of a task's data; N examples."""

    examples: list[Any]
    """(N,) the examples."""
    items: Items
    """The items of the examples."""


class Setting(NamedTuple):
    """Everything that the trainings of one fine-tuning have in common."""

    config: FinetuneConfig
    """The settings of the training; its learning rates are tried one after the other."""
    task: Task
    """The task, whose metric compares evaluations."""
    format: InputFormat
    """The format of the rows."""
    seed: int
    """The seed of weights, order and dropout."""
    placement: Placement
    """The device of the head, and the precision of its products."""


class Evaluation(NamedTuple):
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
    """The best state of a training: its look at dev and its weights."""

    trial: FittingTrial
    """The learning rate and the epochs of the training."""
    steps: int
    """Optimizer steps of the training so far."""
    best: Evaluation
    """The best look at dev."""
    weights: dict[str, Tensor]
    """The weights at the best look at dev."""


@dataclass
class FittingPosition:
    """The position of a training, between two steps."""

    step: int = 0
    """Optimizer steps so far."""
    since_best: int = 0
    """The number of looks at dev since the best one."""
    losses: list[float] = field(default_factory=list)
    """Losses of the steps since the last look."""
    tokens: int = 0
    """The number of tokens read."""
    seconds: float = 0.0
    """Seconds of the training so far."""


class Fitting:
    """A training of a head until its steps are done or dev has stopped improving.

    One look at dev is better than another by the metric, and on a tie by a lower loss.
    """

    def __init__(
        self, head: HeadedModel, train: TaskSplit, dev: TaskSplit, trial: FittingTrial, setting: Setting
    ) -> None:
        """A training that has not begun.

        Args:
            head: the head, on its device.
            train: the split to learn from.
            dev: the split by which the best weights are chosen.
            trial: the learning rate and the epochs.
            setting: the settings that all trainings have in common.
        """
        self.head, self.train, self.dev, self.trial, self.setting = head, train, dev, trial, setting
        config = setting.config
        freeze(head, config)
        optimizer = AdamWConfig(lr=trial.learning_rate, weight_decay=config.weight_decay).build(head)
        self.optimizer = with_rates(optimizer, head, config.layer_decay, config.layer_decay_rule)
        self.course = FittingPosition()
        self.best: Fit | None = None

    def run(
        self,
        log: Callable[[dict[str, Any]], None],
        stopping: Sequence[int],
        progress: TrainingProgress,
        save: Callable[[bool], None],
    ) -> Fit:
        """Train to the end; returns the best state.

        Args:
            log: called with each line of metrics.jsonl.
            stopping: the signals that have come and ask to stop.
            progress: shows the figures.
            save: saves a checkpoint; called behind each look, and with True before a stop and at times between looks.

        Raises:
            Diverged: the loss is not a number any more.
            Interrupted: a signal came; the training is saved.
        """
        course, setting, train = self.course, self.setting, self.train
        config = setting.config
        epoch_steps = config.epoch_steps(len(train.items.owners))
        steps = self.trial.epochs * epoch_steps
        due = {round(steps * (index + 1) / config.evaluations) for index in range(config.evaluations)} - {0}
        schedule = SCHEDULES[config.schedule].model_validate({"warmup": config.warmup}).fitted(steps, None)
        lengths, order = train.items.lengths, list[NDArray[np.int64]]()
        began = time.perf_counter() - course.seconds
        save_at = time.monotonic() + FIRST_SAVE
        for step in range(course.step, steps):
            if config.patience is not None and course.since_best >= config.patience:
                break
            epoch, place = divmod(step, epoch_steps)
            if place == 0 or not order:
                order = shuffled_batches(lengths, config.batch, setting.seed, epoch)
            rate = self.trial.learning_rate * schedule.factor(step, steps)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            course.losses.append(optimize_items(self.head, self.optimizer, train.items, order[place], setting, step))
            course.step, course.tokens = step + 1, course.tokens + int(lengths[order[place]].sum())
            course.seconds = time.perf_counter() - began
            left = (steps - step - 1) * course.seconds / (step + 1)
            progress.step(step + 1, course.losses[-1], course.tokens / course.seconds, left)
            if course.step in due:
                self._look(log, progress, epoch_steps, steps)
            late = time.monotonic() >= save_at
            if course.step in due or stopping or late:
                save(bool(stopping) or late)
            if late:
                save_at = time.monotonic() + SAVED_BETWEEN_LOOKS
            if stopping:
                raise Interrupted(f"stopped at step {step + 1}; the same command with --resume goes on", stopping[0])
        assert self.best is not None
        return self.best

    def _look(
        self, log: Callable[[dict[str, Any]], None], progress: TrainingProgress, epoch_steps: int, steps: int
    ) -> None:
        """Look at dev, and keep the weights if it is the best look so far."""
        course, task = self.course, self.setting.task
        found = _evaluate(self.head, self.dev, self.setting, course.step)
        log(
            {
                "kind": "dev",
                "learning_rate": self.trial.learning_rate,
                "epochs": self.trial.epochs,
                "step": course.step,
                "steps": steps,
                "epoch": round(course.step / epoch_steps, 3),
                "train_loss": sum(course.losses) / len(course.losses),
                "loss": found.loss,
                **found.scores,
                "seconds": round(course.seconds, 3),
            }
        )
        course.losses, course.since_best = [], course.since_best + 1
        best = self.best
        if best is None or found.rank(task) > best.best.rank(task):
            if best is None or not best.best.perfect(task):  # behind a perfect score there is no better one
                course.since_best = 0
            weights = {name: tensor.detach().clone() for name, tensor in self.head.state_dict().items()}
            best = self.best = Fit(self.trial, course.step, found, weights)
        best.steps = course.step
        progress.held_out = f"  dev {task.metric} {best.best.scores[task.metric]:.3f}"


def optimize_items(
    head: HeadedModel,
    optimizer: torch.optim.Optimizer,
    items: Items,
    chosen: NDArray[np.int64],
    setting: Setting,
    step: int,
) -> float:
    """Take one optimizer step on some items; returns their mean loss."""
    head.train()
    config = setting.config
    if config.freeze == "model":
        head.model.eval()  # features are those of the model as it is used, without dropout
    seed_torch(step_seed(setting.seed, step, 0), setting.placement.device)
    device, precision = setting.placement
    batch = setting.task.collate(items, chosen, setting.format).to(device)
    with autocast(device, precision):
        scores, beside = head.read(batch, bool(config.language_model))
    loss = setting.task.loss(scores, items, chosen)
    if beside is not None:
        loss = loss + config.language_model * beside
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(head.parameters(), config.clip)
    for group in optimizer.param_groups:
        gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
        if gradients and (factor := group.get("gradient_factor", 1.0)) != 1:
            torch._foreach_mul_(gradients, factor)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(float(norm))):
        raise Diverged(
            f"the loss of fine-tuning is not a finite number at step {step + 1}; try a lower learning rate, a longer "
            "warm-up, or a recipe with training.precision float32"
        )
    return value


def _evaluate(head: HeadedModel, dev: TaskSplit, setting: Setting, step: int) -> Evaluation:
    found = answers_of(head, dev.items, setting.task, setting.format, setting.placement, labelled=True, look=True)
    assert found.loss is not None
    task = setting.task.resolve(dev.examples, found.answers)
    return Evaluation(step, task.score(dev.examples, found.answers), found.loss)
