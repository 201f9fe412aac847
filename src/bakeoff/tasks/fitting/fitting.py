"""A trial of fine-tuning, as the loop of all trainings sees it: batches, the task's loss, evaluations on dev."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_map_only
from typing_extensions import override

from bakeoff.batching.by_length import shuffled_batches
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.distributed.shards import shard
from bakeoff.machine.transfer import pinned
from bakeoff.models.stack import parts_in
from bakeoff.resources.device import Placement
from bakeoff.resources.micro_batch import Size
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.settings_files import record_micro_batch
from bakeoff.tasks.fitting.trial import (
    BEST,
    CHOSEN,
    NONE_ENDED,
    DevEvaluation,
    Ended,
    Fit,
    FittingState,
    FittingTrial,
    fit_of,
    recorded,
)
from bakeoff.tasks.heads.depths import freeze, with_rates
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.task import HeadInputs, Task
from bakeoff.trainer.position import Position
from bakeoff.trainer.unit import SPARE, Evaluation, Unit

OF_TASK, OF_NEXT_TOKEN = "task", "language_model"
"""The names of the losses: of the task's labels, and of the next token in its texts."""


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
    """The task, whose metric compares evaluations on dev."""
    format: InputFormat
    """The format of the rows."""
    seed: int
    """The seed of weights, order and dropout."""
    placement: Placement
    """The device of the head, and the precision of its products."""
    processes: Processes = ALONE
    """The processes that train the head together."""
    micro_batch: int | None = None
    """Items that go through the head at once, as the config says or, where it says auto, as it was decided; None: the
    whole batch."""
    name: str = "fine-tuning"
    """The name of what is fine-tuned, in lines about it."""


class ItemBatch(NamedTuple):
    """A micro-batch of items of a task."""

    inputs: HeadInputs
    """What the head reads."""
    chosen: NDArray[np.int64]
    """The indices of the items."""
    tokens: int
    """The number of their tokens."""
    targets: dict[str, float]
    """The number of targets of each loss."""
    number: int = 0
    """Its number in the whole batch of a step."""


class Fitting(Unit[ItemBatch]):
    """A training of a head until its steps are done or dev has stopped improving.

    One evaluation on dev is better than another by the metric, and on a tie by a lower loss.

    Args:
        head: the head, on its device.
        train: the split to learn from.
        dev: the split by which the best weights are chosen.
        trial: the learning rate and the epochs.
        setting: the settings that all trainings have in common.
        ended: the trainings before this one.
        folder: the folder of the unfinished run; left out where steps are taken alone.

    Attributes:
        best: the best evaluation so far, and its weights.
    """

    def __init__(
        self,
        head: HeadedModel,
        train: TaskSplit,
        dev: TaskSplit,
        trial: FittingTrial,
        setting: Setting,
        ended: Ended = NONE_ENDED,
        folder: Path | None = None,
    ) -> None:
        self.module = self.head = head
        self.train, self.dev, self.trial, self.setting, self.ended = train, dev, trial, setting, ended
        self.seed, self.placement, config = setting.seed, setting.placement, setting.config
        self.processes, self.title, self.folder = setting.processes, setting.name, folder
        self.independent_rows = head.model.independent_rows
        self.fits_memory = config.micro_batch == "auto" and self.independent_rows
        freeze(head, config)
        if setting.processes.shards:
            shard(head, parts_in(head), setting.processes, setting.placement.device, entries=["read"])
        optimizer = config.optimizer_at(trial.learning_rate).build(head, setting.placement.precision)
        self.optimizer = with_rates(optimizer, head, config.layer_decay, config.layer_decay_rule)
        self.learning_rate, self.clip = trial.learning_rate, config.clip
        self.epoch_steps = config.epoch_steps(len(train.items.owners))
        self.steps, self.steps_before = trial.epochs * self.epoch_steps, ended.steps
        self.average = config.average
        self.schedule = config.schedule_of(self.steps)
        self.evaluations = {round(self.steps * (i + 1) / config.evaluations) for i in range(config.evaluations)} - {0}
        self.best: Fit | None = None
        self.since_best = 0
        self.dev_losses: list[float] = []
        self._order: tuple[int, list[NDArray[np.int64]]] = (-1, [])

    @property
    @override
    def over(self) -> bool:
        patience = self.setting.config.patience
        return patience is not None and self.since_best >= patience

    @property
    @override
    def how_to_go_on(self) -> str:
        return "the same command with --resume goes on"

    @override
    def begin(self) -> None:
        self.head.train()
        if self.setting.config.freeze == "model":
            self.head.model.eval()  # features are those of the model as it is used, without dropout

    @override
    def batches(self, step: int) -> list[ItemBatch]:
        epoch, index = divmod(step, self.epoch_steps)
        config, lengths = self.setting.config, self.train.items.lengths
        if self._order[0] != epoch:
            self._order = (epoch, shuffled_batches(lengths, config.batch, self.seed, epoch))
        chosen = self._order[1][index]
        size = self.setting.micro_batch or len(chosen)
        share = self.processes.share(-(-len(chosen) // size))
        return [self.micro_batch_of(chosen[number * size : (number + 1) * size], number) for number in share]

    def micro_batch_of(self, chosen: NDArray[np.int64], number: int) -> ItemBatch:
        """The micro-batch of some items, by their indices, with its number in the batch."""
        items, task = self.train.items, self.setting.task
        targets = {OF_TASK: task.targets(items, chosen)}
        if self.setting.config.language_model:
            rows = items.rows(chosen)
            targets[OF_NEXT_TOKEN] = float(items.encoded.lengths[rows].sum() - len(rows))
        collated = task.collate(items, chosen, self.setting.format)
        inputs = tree_map_only(Tensor, partial(pinned, device=self.placement.device), collated)
        return ItemBatch(inputs, chosen, int(items.lengths[chosen].sum()), targets, number)

    @property
    @override
    def micro_batch(self) -> Size:
        return self.setting.micro_batch or self.setting.config.batch

    @override
    def cut(self, size: Size) -> None:
        assert isinstance(size, int)
        self.setting = self.setting._replace(micro_batch=size)

    @override
    def record(self, change: dict[str, Any]) -> None:
        if self.folder is not None:
            record_micro_batch(self.folder, change)

    @override
    def counts(self, micro_batches: Sequence[ItemBatch]) -> dict[str, float]:
        names = [OF_TASK, *([OF_NEXT_TOKEN] if self.setting.config.language_model else [])]
        return {name: sum(each.targets[name] for each in micro_batches) for name in names}

    @override
    def losses(self, batch: ItemBatch, counts: dict[str, float]) -> dict[str, Tensor]:
        with self.placement.autocast():
            inputs = batch.inputs.to(self.placement.device)
            scores, beside = self.head.read(inputs, bool(self.setting.config.language_model))
        means = {OF_TASK: self.setting.task.loss(scores, self.train.items, batch.chosen)}
        if beside is not None:
            means[OF_NEXT_TOKEN] = beside
        return {name: mean * (batch.targets[name] / counts[name]) for name, mean in means.items()}

    @override
    def spare(self, micro_batches: Sequence[ItemBatch]) -> ItemBatch:
        first = np.arange(min(len(self.train.items.owners), self.setting.micro_batch or 1))
        batch = micro_batches[-1] if micro_batches else self.micro_batch_of(first, SPARE)
        return batch._replace(number=SPARE)

    @override
    def weights(self, step: int) -> dict[str, float]:
        return {OF_TASK: 1.0, OF_NEXT_TOKEN: self.setting.config.language_model}

    @override
    def of_schedule(self, step: int) -> float:
        return self.schedule.factor(step, self.steps, self.dev_losses)

    @override
    def evaluate(self, position: Position) -> Evaluation:
        task, evaluation = self.setting.task, self._evaluate_dev(position.step)
        self.dev_losses.append(evaluation.loss)
        self._compare(evaluation)
        assert self.best is not None
        means, weights = position.means(), self.weights(position.step - 1)
        line = {
            "kind": "dev",
            "learning_rate": self.trial.learning_rate,
            "epochs": self.trial.epochs,
            "step": position.step,
            "steps": self.steps,
            "epoch": round(position.step / self.epoch_steps, 3),
            "train_loss": sum(weights[name] * mean for name, mean in means.items() if name in weights),
            "loss": evaluation.loss,
            **evaluation.scores,
            "seconds": round(position.seconds + position.evaluation_seconds, 3),
        }
        position.begin_line()
        return Evaluation(line, f"dev {task.metric} {self.best.best.scores[task.metric]:.3f}")

    def _evaluate_dev(self, step: int) -> DevEvaluation:
        task, format, dev = self.setting.task, self.setting.format, self.dev
        where = self.placement, self.processes
        predicted = predictions_of(self.head, dev.items, task, format, *where, labelled=True, in_training=True)
        assert predicted.loss is not None
        resolved = task.resolve(dev.examples, predicted.predictions)
        return DevEvaluation(step, resolved.score(dev.examples, predicted.predictions), predicted.loss)

    def _compare(self, evaluation: DevEvaluation) -> None:
        """Keep the weights if the evaluation is the best one so far."""
        task, best = self.setting.task, self.best
        self.since_best += 1
        if best is None or evaluation.rank(task) > best.best.rank(task):
            if best is None or not best.best.perfect(task):  # after a perfect score there is no better one
                self.since_best = 0
            weights = {name: tensor.detach().clone() for name, tensor in self.head.state_dict().items()}
            best = self.best = Fit(self.trial, evaluation.step, evaluation, weights)
        best.steps = evaluation.step

    @override
    def diverged(self, name: str, step: int) -> str:
        return (
            f"the loss of fine-tuning is not a finite number at step {step}; try a lower learning rate, a longer "
            "warm-up, or a recipe with training.precision float32"
        )

    @override
    def state(self) -> dict[str, Any]:
        return {"since_best": self.since_best, BEST: recorded(self.best), **self.ended.state()}

    @override
    def tensors(self) -> dict[str, dict[str, Tensor]]:
        fits = {BEST: self.best, CHOSEN: self.ended.best}
        return {name: fit.weights for name, fit in fits.items() if fit is not None}

    @override
    def load(self, checkpoint: Path, state: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
        state = FittingState.check(state, f"{checkpoint}/state.json")
        mine = {"learning_rate": self.trial.learning_rate, "epochs": self.trial.epochs}
        self.dev_losses = [line["loss"] for line in lines if mine.items() <= line.items()]
        self.since_best, self.best = state["since_best"], fit_of(checkpoint, BEST, state)
