"""Fitting a head: steps, evaluations on dev, early stopping."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import Diverged, Interrupted
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.schedules import LinearConfig
from bakeoff.resources.device import Placement, autocast
from bakeoff.tasks.answering import answers_of
from bakeoff.tasks.batches import shuffled_batches
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads import Head
from bakeoff.tasks.inputs import InputFormat
from bakeoff.tasks.task import Items, Task
from bakeoff.training.loop import step_seed
from bakeoff.training.progress import TrainingProgress


class Part(NamedTuple):
    """A part of a task's data; N examples."""

    examples: list[Any]
    """(N,) the examples."""
    items: Items
    """What becomes of them."""


class Setting(NamedTuple):
    """What all trainings of one fine-tuning have in common."""

    config: FinetuneConfig
    """How to train; its learning rates are tried one after the other."""
    task: Task
    """What is learned, and by what evaluations are compared."""
    format: InputFormat
    """The rows' format."""
    seed: int
    """Seed of the weights, the order and the dropout."""
    placement: Placement
    """Where the head is, and the precision of its products."""


class Evaluation(NamedTuple):
    """The scores and the loss on dev after some steps."""

    step: int
    """Optimizer steps done."""
    scores: dict[str, float]
    """All metrics."""
    loss: float
    """The task's mean loss."""

    def rank(self, task: Task) -> tuple[float, float]:
        """What makes one look better than another: the metric, then the loss."""
        value = self.scores[task.metric]
        return -value if task.metric in task.config.lower_is_better else value, -self.loss

    def perfect(self, task: Task) -> bool:
        """Behind this look there is no better one by the metric."""
        return self.scores[task.metric] == (0 if task.metric in task.config.lower_is_better else 1)


@dataclass
class Fit:
    """The best of a training at one learning rate: its look at dev and its weights."""

    learning_rate: float
    """At the end of its warm-up."""
    steps: int
    """Steps done."""
    best: Evaluation
    """The best look at dev."""
    weights: dict[str, Tensor]
    """The weights at that moment."""


def fit(
    head: Head,
    train: Part,
    dev: Part,
    learning_rate: float,
    setting: Setting,
    *,
    log: Callable[[dict[str, Any]], None],
    stopping: Sequence[int],
    progress: TrainingProgress,
) -> Fit:
    """Train a head until its steps are done or dev has stopped improving.

    One evaluation is better than another by the metric, and on a tie by a lower loss.

    Args:
        head: on the device.
        train: what is learned from.
        dev: what the best weights are chosen by.
        learning_rate: at the end of the warm-up.
        setting: how to train and where.
        log: takes the lines of metrics.jsonl.
        stopping: signals that asked to stop.
        progress: where figures are shown.

    Raises:
        Diverged: the loss is not a number any more.
        Interrupted: a signal came.
    """
    config = setting.config
    epoch_steps, steps = plan_steps(len(train.items.owners), config)
    due = {round(steps * (index + 1) / config.evaluations) for index in range(config.evaluations)} - {0}
    optimizer = AdamWConfig(lr=learning_rate, weight_decay=config.weight_decay).build(head)
    schedule = LinearConfig(warmup=config.warmup).fitted(steps, None)
    lengths, order = train.items.lengths, list[NDArray[np.int64]]()
    best: Fit | None = None
    since_best, losses, tokens, began = 0, list[float](), 0, time.perf_counter()
    for step in range(steps):
        epoch, place = divmod(step, epoch_steps)
        if place == 0:
            order = shuffled_batches(lengths, config.batch, setting.seed, epoch)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * schedule.factor(step, steps)
        losses.append(optimize_items(head, optimizer, train.items, order[place], setting, step))
        tokens += int(lengths[order[place]].sum())
        seconds = time.perf_counter() - began
        progress.step(step + 1, losses[-1], tokens / seconds, (steps - step - 1) * seconds / (step + 1))
        if stopping:
            raise Interrupted(
                f"stopped at step {step + 1}; nothing was written, the same command starts anew", stopping[0]
            )
        if step + 1 not in due:
            continue
        found = _evaluate(head, dev, setting, step + 1)
        log(
            {
                "kind": "dev",
                "learning_rate": learning_rate,
                "step": step + 1,
                "epoch": round((step + 1) / epoch_steps, 3),
                "train_loss": sum(losses) / len(losses),
                "loss": found.loss,
                **found.scores,
                "seconds": round(seconds, 3),
            }
        )
        losses, since_best = [], since_best + 1
        if best is None or found.rank(setting.task) > best.best.rank(setting.task):
            if best is None or not best.best.perfect(setting.task):  # behind a perfect score there is no better one
                since_best = 0
            weights = {name: tensor.detach().clone() for name, tensor in head.state_dict().items()}
            best = Fit(learning_rate, step + 1, found, weights)
        best.steps = step + 1
        progress.held_out = f"  dev {setting.task.metric} {best.best.scores[setting.task.metric]:.3f}"
        if config.patience is not None and since_best >= config.patience:
            break
    assert best is not None
    return best


def optimize_items(
    head: Head,
    optimizer: torch.optim.Optimizer,
    items: Items,
    chosen: NDArray[np.int64],
    setting: Setting,
    step: int,
) -> float:
    """One optimizer step on some items; returns their mean loss."""
    head.train()
    torch.manual_seed(step_seed(setting.seed, step, 0))
    device, precision = setting.placement
    with autocast(device, precision):
        scores = head(setting.task.collate(items, chosen, setting.format).to(device))
    loss = setting.task.loss(scores, items, chosen)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(head.parameters(), setting.config.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(float(norm))):
        raise Diverged(
            f"the loss of fine-tuning is not a finite number at step {step + 1}; try a lower learning rate, a longer "
            "warm-up, or a recipe with training.precision float32"
        )
    return value


def _evaluate(head: Head, dev: Part, setting: Setting, step: int) -> Evaluation:
    found = answers_of(head, dev.items, setting.task, setting.format, setting.placement, labelled=True, look=True)
    assert found.loss is not None
    return Evaluation(step, setting.task.score(dev.examples, found.answers), found.loss)


def plan_steps(items: int, config: FinetuneConfig) -> tuple[int, int]:
    """Steps of an epoch of so many items, and of the whole training at most."""
    epoch_steps = -(-items // config.batch)
    return epoch_steps, epoch_steps * max(config.epochs, -(-config.least_steps // epoch_steps))
