"""The trainings of a fine-tuning: each learning rate with each number of epochs, one after the other; dev decides."""

from collections.abc import Callable, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.display.progress import Shown, TrainingProgress
from bakeoff.distributed.shards import load_whole
from bakeoff.errors import Diverged, Interrupted
from bakeoff.resources.device import return_device_memory
from bakeoff.resources.first_line import first_line
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.fitting.fitting import Fitting, ItemBatch, Setting, TaskSplit
from bakeoff.tasks.fitting.starting_point import StartingPoint, new_head
from bakeoff.tasks.fitting.trial import NONE_ENDED, Fit, FittingTrial, ended_before
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.trainer.loop import Trainer
from bakeoff.trainer.save_plan import SavePlan
from bakeoff.trainer.shortage import Resized

SAVED_EVERY = 30.0
"""The fewest seconds between checkpoints; saving one after each evaluation would cost more than it saves."""
SAVED_BETWEEN_EVALUATIONS = 600.0
"""Seconds between checkpoints where evaluations on dev are far apart."""


class Fitted(NamedTuple):
    """The result of all trainings."""

    head: HeadedModel
    """The head with the best training's weights, in evaluation mode."""
    best: Fit
    """The best training."""
    transferred: int
    """The number of tensors that came from the run."""
    trials: list[TrialResult]
    """The result of each training."""
    save: Callable[[], None]
    """Saves a checkpoint of the last training at its end, for whoever is interrupted before the results are written."""


def planned_trials(config: FinetuneConfig) -> list[FittingTrial]:
    """The trainings: all learning rates with all numbers of epochs."""
    return [FittingTrial(rate, epochs) for epochs, rate in product(config.epochs, config.learning_rate)]


def run_trials(
    source: StartingPoint, splits: dict[str, TaskSplit], setting: Setting, folder: Path, shown: Shown
) -> Fitted:
    """Run all trainings, from a checkpoint where the folder has one.

    Args:
        source: the starting point of each training.
        splits: train and dev.
        setting: the settings that all trainings have in common.
        folder: the folder of the unfinished run.
        shown: see `TrainingProgress`.

    Raises:
        Diverged: no training came to an end.
        Interrupted: a signal came; the folder has a checkpoint.
    """
    with stop_signals() as stopping:
        trials, processes = _Trials(source, splits, setting, Run(folder), shown, stopping), setting.processes
        for trial in trials.planned[len(trials.ended.trials) :]:
            trials.run_one(trial)
        best, trainer = trials.ended.best, trials.trainer
        assert best is not None
        assert trainer is not None
        load_whole(trainer.unit.module, best.weights)
        if caught := processes.largest(stopping[0] if stopping else 0):
            trainer.save()
            processes.wait()
            raise Interrupted("stopped when the training was over; the same command with --resume goes on", caught)
    head = trainer.unit.module.eval()
    assert isinstance(head, HeadedModel)
    return Fitted(head, best, trials.transferred, trials.ended.trials, trainer.save)


class _Trials:
    """The trainings of a fine-tuning one after the other, from a checkpoint where the run's folder has one.

    Attributes:
        planned: all of them.
        ended: those that have ended.
        setting: the settings, with the micro-batch that fits.
        trainer: that of the last training.
        transferred: the number of tensors that came from the run.
    """

    def __init__(
        self,
        source: StartingPoint,
        splits: dict[str, TaskSplit],
        setting: Setting,
        run: Run,
        shown: Shown,
        stopping: Sequence[int],
    ) -> None:
        self.source, self.splits, self.setting, self.run = source, splits, setting, run
        self.stopping, self.processes = stopping, setting.processes
        self.shown: Shown = shown if self.processes.first else False
        self.planned, newest = planned_trials(setting.config), self._newest()
        self.ended = NONE_ENDED if newest is None else ended_before(newest)
        self.first = self.planned[len(self.ended.trials)]  # a checkpoint belongs to a training that had not ended
        self.trainer: Trainer[ItemBatch] | None = None
        self.transferred = 0

    def _newest(self) -> Path | None:
        """The newest checkpoint; None: there is none."""
        return self.processes.once(lambda: next(reversed(list_checkpoints(self.run.checkpoints)), None))

    def run_one(self, trial: FittingTrial) -> None:
        """Run a training, anew or from its last checkpoint where memory runs out, and note how it ended."""
        begins = self.processes.once(self.run.metrics_file.mark)
        for attempt in count():
            self.trainer = None  # or the device would hold two models
            try:
                score = self._attempt(trial, begins, attempt)
                break
            except Resized as change:  # its traceback holds the memory of a step
                line, size = str(change), change.size
            assert isinstance(size, int)  # a fine-tuning counts rows
            self.setting = self.setting._replace(micro_batch=size)
            TrainingProgress(self.source.recipe.name, 0, self.shown).line(line)
            return_device_memory(self.setting.placement.device)
        assert self.trainer is not None
        position, unit = self.trainer.position, self.trainer.unit
        assert isinstance(unit, Fitting)
        self.setting = unit.setting
        seconds = round(position.seconds + position.evaluation_seconds, 3)
        result = TrialResult(learning_rate=trial.learning_rate, epochs=trial.epochs, score=score, seconds=seconds)
        best = None if score is None else unit.best
        self.ended = self.ended.and_then(result, best, position.step, self.setting.task)

    def _attempt(self, trial: FittingTrial, begins: dict[str, Any], attempt: int) -> float | None:
        """The score of a training; `begins` marks the lines of those before it in metrics.jsonl.

        Raises:
            Resized: memory ran out.
        """
        setting, name, processes = self.setting, self.source.recipe.name, self.processes
        head, self.transferred = new_head(self.source, setting)
        unit = Fitting(head, self.splits["train"], self.splits["dev"], trial, setting, self.ended, self.run.path)
        title = _title(name, trial, setting.config)
        prefixes = self.source.recipe.reads_both_sides
        where = first_line(head.model, setting.placement, processes, prefixes=prefixes)
        on = [f"{name}: on {where}"] if trial is self.first and not attempt else []
        with TrainingProgress(title, unit.steps, self.shown, on) as bar:
            trainer = Trainer(unit, self.run, bar, SavePlan(SAVED_BETWEEN_EVALUATIONS, SAVED_EVERY, at_end=True))
            if trial is self.first or (attempt and self._has_checkpoint()):
                if trainer.resume():
                    bar.line(f"{title}: resumed at step {trainer.position.step}")
            elif attempt:
                processes.write(self.run.metrics_file.restore, begins, self.ended.steps)
            last_hope = self.ended.best is None and trial is self.planned[-1]
            score = _trained(trainer, title, self.stopping, last_hope)
        self.trainer = trainer
        return score

    def _has_checkpoint(self) -> bool:
        """Whether the newest checkpoint is of the training after those that have ended."""
        newest = self._newest()
        return newest is not None and checkpoint_step(newest) > self.ended.steps


def _trained(trainer: Trainer[ItemBatch], title: str, stopping: Sequence[int], last_hope: bool) -> float | None:
    """Train to the end; the best score on dev, or None where the training diverged.

    Raises:
        Diverged: it did, and there is no other training to take in its place.
        Resized: memory ran out, and the training goes on in smaller micro-batches.
    """
    unit = trainer.unit
    assert isinstance(unit, Fitting)
    try:
        trainer.train(stopping)
    except Diverged as error:
        if last_hope:
            raise
        trainer.shown.line(f"{title}: {error}")
        return None
    assert unit.best is not None
    return unit.best.best.scores[unit.setting.task.metric]


def _title(name: str, trial: FittingTrial, config: FinetuneConfig) -> str:
    parts = [f"lr {trial.learning_rate:g}"] if len(config.learning_rate) > 1 else []
    parts += [f"{trial.epochs} epochs"] if len(config.epochs) > 1 else []
    return " ".join([name, *parts])
