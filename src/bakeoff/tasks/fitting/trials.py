"""The trainings of a fine-tuning: each learning rate with each number of epochs, one after the other; dev decides."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bakeoff.display.progress import Shown, TrainingProgress
from bakeoff.distributed.shards import load_whole
from bakeoff.errors import Diverged, Interrupted
from bakeoff.resources.first_line import first_line
from bakeoff.runs.checkpoint import list_checkpoints
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
    run, planned, processes = Run(folder), planned_trials(setting.config), setting.processes
    checkpoints = processes.once(lambda: list_checkpoints(run.checkpoints))
    ended = ended_before(checkpoints[-1]) if checkpoints else NONE_ENDED
    first, *others = planned[len(ended.trials) :]  # a checkpoint belongs to a training that had not ended
    with stop_signals() as stopping:
        for trial in (first, *others):
            head, transferred = new_head(source, setting)
            unit = Fitting(head, splits["train"], splits["dev"], trial, setting, ended)
            title = _title(source.recipe.name, trial, setting.config)
            where = first_line(head.model, setting.placement, processes)
            on = [f"{source.recipe.name}: on {where}"] if trial is first else []
            with TrainingProgress(title, unit.steps, shown if processes.first else False, on) as bar:
                trainer = Trainer(unit, run, bar, SavePlan(SAVED_BETWEEN_EVALUATIONS, SAVED_EVERY, at_end=True))
                if trial is first and trainer.resume():
                    bar.line(f"{title}: resumed at step {trainer.position.step}")
                score = _trained(trainer, title, stopping, last_hope=ended.best is None and trial is planned[-1])
            position = trainer.position
            seconds = round(position.seconds + position.evaluation_seconds, 3)
            result = TrialResult(learning_rate=trial.learning_rate, epochs=trial.epochs, score=score, seconds=seconds)
            ended = ended.and_then(result, None if score is None else unit.best, position.step, setting.task)
        assert ended.best is not None
        load_whole(trainer.unit.module, ended.best.weights)
        if caught := processes.largest(stopping[0] if stopping else 0):
            trainer.save()
            processes.wait()
            raise Interrupted("stopped when the training was over; the same command with --resume goes on", caught)
    return Fitted(unit.head.eval(), ended.best, transferred, ended.trials, trainer.save)


def _trained(trainer: Trainer[ItemBatch], title: str, stopping: Sequence[int], last_hope: bool) -> float | None:
    """Train to the end; the best score on dev, or None where the training diverged.

    Raises:
        Diverged: it did, and there is no other training to take in its place.
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
