"""Fitting a classifier: steps, evaluations on dev, early stopping."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import Diverged, Interrupted
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.schedules import LinearConfig
from bakeoff.resources.device import autocast
from bakeoff.tasks.batches import collate, shuffled_batches
from bakeoff.tasks.classification import Classifier
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.inputs import EncodedRows, InputFormat
from bakeoff.tasks.metrics import score
from bakeoff.tasks.probabilities import class_probabilities
from bakeoff.training.loop import step_seed
from bakeoff.training.progress import TrainingProgress


class Rows(NamedTuple):
    """Encoded rows with their classes; N rows."""

    encoded: EncodedRows
    """The rows."""
    labels: list[int]
    """(N,) the class of each."""


class Setting(NamedTuple):
    """What all trainings of one fine-tuning have in common."""

    config: FinetuneConfig
    """How to train; its learning rates are tried one after the other."""
    metric: str
    """What evaluations are compared by."""
    format: InputFormat
    """The rows' format."""
    seed: int
    """Seed of the weights, the order and the dropout."""
    device: torch.device
    """Where the classifier is."""
    precision: str
    """float32 or bfloat16."""


class Evaluation(NamedTuple):
    """The scores and the loss on dev after some steps."""

    step: int
    """Optimizer steps done."""
    scores: dict[str, float]
    """All metrics."""
    loss: float
    """Mean cross-entropy in nats."""

    def rank(self, metric: str) -> tuple[float, float]:
        """What makes one look better than another: the metric, then the loss."""
        return self.scores[metric], -self.loss


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
    classifier: Classifier,
    train: Rows,
    dev: Rows,
    learning_rate: float,
    setting: Setting,
    *,
    log: Callable[[dict[str, Any]], None],
    stopping: Sequence[int],
    progress: TrainingProgress,
) -> Fit:
    """Train a classifier until its steps are done or dev has stopped improving.

    One evaluation is better than another by the metric, and on a tie by a lower loss.

    Args:
        classifier: on the device.
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
    epoch_steps, steps = plan_steps(len(train.labels), config)
    due = {round(steps * (index + 1) / config.evaluations) for index in range(config.evaluations)} - {0}
    optimizer = AdamWConfig(lr=learning_rate, weight_decay=config.weight_decay).build(classifier)
    schedule = LinearConfig(warmup=config.warmup).fitted(steps, None)
    lengths, order = train.encoded.lengths, list[NDArray[np.int64]]()
    best: Fit | None = None
    since_best, losses, tokens, began = 0, list[float](), 0, time.perf_counter()
    for step in range(steps):
        epoch, place = divmod(step, epoch_steps)
        if place == 0:
            order = shuffled_batches(lengths, config.batch, setting.seed, epoch)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * schedule.factor(step, steps)
        losses.append(optimize_rows(classifier, optimizer, train, order[place], setting, step))
        tokens += int(lengths[order[place]].sum())
        seconds = time.perf_counter() - began
        progress.step(step + 1, losses[-1], tokens / seconds, (steps - step - 1) * seconds / (step + 1))
        if stopping:
            raise Interrupted(
                f"stopped at step {step + 1}; nothing was written, the same command starts anew", stopping[0]
            )
        if step + 1 not in due:
            continue
        found = _evaluate(classifier, dev, setting, step + 1)
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
        if best is None or found.rank(setting.metric) > best.best.rank(setting.metric):
            if best is None or best.best.scores[setting.metric] < 1:  # behind a perfect score there is no better one
                since_best = 0
            weights = {name: tensor.detach().clone() for name, tensor in classifier.state_dict().items()}
            best = Fit(learning_rate, step + 1, found, weights)
        best.steps = step + 1
        progress.held_out = f"  dev {setting.metric} {best.best.scores[setting.metric]:.3f}"
        if config.patience is not None and since_best >= config.patience:
            break
    assert best is not None
    return best


def optimize_rows(
    classifier: Classifier,
    optimizer: torch.optim.Optimizer,
    train: Rows,
    chosen: NDArray[np.int64],
    setting: Setting,
    step: int,
) -> float:
    """One optimizer step; returns the batch's mean loss."""
    classifier.train()
    torch.manual_seed(step_seed(setting.seed, step, 0))
    labels = torch.tensor([train.labels[row] for row in chosen], device=setting.device)
    with autocast(setting.device, setting.precision):
        scores = classifier(collate(train.encoded, chosen, setting.format).to(setting.device))
    loss = F.cross_entropy(scores, labels)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(classifier.parameters(), setting.config.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    value = float(loss.detach())
    if not (math.isfinite(value) and math.isfinite(float(norm))):
        raise Diverged(
            f"the loss of fine-tuning is not a finite number at step {step + 1}; try a lower learning rate, a longer "
            "warm-up, or a recipe with training.precision float32"
        )
    return value


def _evaluate(classifier: Classifier, dev: Rows, setting: Setting, step: int) -> Evaluation:
    predicted = class_probabilities(
        classifier, dev.encoded, setting.format, setting.device, setting.precision, dev.labels
    )
    assert predicted.loss is not None
    return Evaluation(step, score(dev.labels, predicted.classes, classifier.output.out_features), predicted.loss)


def plan_steps(rows: int, config: FinetuneConfig) -> tuple[int, int]:
    """Steps of an epoch, and of the whole training at most."""
    epoch_steps = -(-rows // config.batch)
    return epoch_steps, epoch_steps * max(config.epochs, -(-config.least_steps // epoch_steps))
