"""The trainings of a fine-tuning: each learning rate with each number of epochs, one after the other; dev decides."""

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from bakeoff.errors import Diverged, Interrupted
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.fitting.checkpoint import EndedTrials, fill_fitting, newest_checkpoint, read_found, save_checkpoint
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Fit, Fitting, FittingTrial, Setting, TaskSplit
from bakeoff.tasks.heads.depths import fresh_tensors
from bakeoff.tasks.heads.heads import HeadedModel, transfer
from bakeoff.tasks.task import Task
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.progress import Shown, TrainingProgress

SAVED_EVERY = 30.0
"""The fewest seconds between checkpoints; saving one behind each look would cost more than it saves."""


OF_THE_HEAD = ("pooling", "pooler", "transform", "separators")
"""Settings of the head and its rows, without which the weights of a fine-tuned run's head are of no use."""


class StartingPoint(NamedTuple):
    """The recipe, the tokenizer and the weights from which a fine-tuning starts."""

    recipe: Recipe
    """The recipe whose architecture is fine-tuned."""
    tokenizer: Tokenizer
    """The tokenizer of all texts."""
    run: Run | None
    """The run whose weights are taken, pre-trained or fine-tuned; None: fresh weights."""
    learned: Task | None = None
    """The task of the run, if it is fine-tuned, else None."""
    config: FinetuneConfig | None = None
    """The settings with which the run was fine-tuned, else None."""

    @property
    def precision(self) -> Literal["auto", "float32", "bfloat16"]:
        """The precision that the recipe asks for; the machine of the pre-training may have chosen another."""
        if self.run is None or self.learned is not None:
            return self.recipe.training.precision
        return Recipe.parse(self.run.environment["recipe"], str(self.run.path)).training.precision

    def continued(self, config: FinetuneConfig) -> FinetuneConfig:
        """The config, in which settings of the head that are left out become those of the fine-tuned run."""
        before = self.config
        if before is None:
            return config
        kept = {name: getattr(before, name) for name in OF_THE_HEAD if name not in config.model_fields_set}
        return config.model_copy(update=kept)

    def taught(self, task: Task) -> bool:
        """Whether the run was fine-tuned to the same classes, so that its last linear layer can be loaded."""
        return (
            self.learned is not None
            and all(getattr(self.learned, name) == getattr(task, name) for name in ("classes", "outputs"))
            and self.learned.config.kind == task.config.kind
        )


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
    config, task, run = setting.config, setting.task, Run(folder)
    trials = planned_trials(config)
    checkpoint = newest_checkpoint(folder)
    found = EndedTrials([], None) if checkpoint is None else read_found(checkpoint, run, trials)
    if checkpoint is None:
        run.metrics_file.clear()
    transferred = 0
    head: HeadedModel | None = None
    with stop_signals() as stopping:
        for trial in trials[len(found.trials) :]:
            head, transferred = new_head(source, setting)
            fitting = Fitting(head, splits["train"], splits["dev"], trial, setting)
            if checkpoint is not None:
                fill_fitting(checkpoint, fitting)
            checkpoint = None
            title = _title(source.recipe.name, trial, config)
            steps = trial.epochs * config.epoch_steps(len(splits["train"].items.owners))
            with TrainingProgress(title, steps, shown) as bar:
                if fitting.course.step:
                    bar.line(f"{title}: resumed at step {fitting.course.step}")
                best: Fit | None = None
                try:
                    best = fitting.run(run.metrics_file.append, stopping, bar, _saving(folder, fitting, found))
                except Diverged as error:
                    if found.best is None and trial is trials[-1]:
                        raise
                    bar.line(f"{title}: {error}")
            score = None if best is None else best.best.scores[task.metric]
            result = TrialResult(
                learning_rate=trial.learning_rate,
                epochs=trial.epochs,
                score=score,
                seconds=round(fitting.course.seconds, 3),
            )
            before, kept = found, found.best
            if best is not None and (kept is None or best.best.rank(task) > kept.best.rank(task)):
                kept = best
            found = EndedTrials([*found.trials, result], kept)
    assert head is not None  # a checkpoint belongs to a training that had not ended
    assert found.best is not None
    head.load_state_dict(found.best.weights)
    save = partial(save_checkpoint, folder, fitting, before)
    if stopping:
        save()
        raise Interrupted("stopped when the training was over; the same command with --resume goes on", stopping[0])
    return Fitted(head.eval(), found.best, transferred, found.trials, save)


def new_head(source: StartingPoint, setting: Setting) -> tuple[HeadedModel, int]:
    """A head on its device with the weights from which a training starts, and the number of tensors from a run."""
    config, task = setting.config, setting.task
    torch.manual_seed(setting.seed)
    head = task.build_head(source.recipe, source.tokenizer.size, config).to(setting.placement.device)
    if source.run is None:
        return head, 0
    run = source.run
    return head, transfer(
        head,
        run.path / "model.safetensors",
        run.recipe,
        keep=fresh_tensors(head, config.reinitialise_last),
        output=source.taught(task),
    )


def _title(name: str, trial: FittingTrial, config: FinetuneConfig) -> str:
    told = [f"lr {trial.learning_rate:g}"] if len(config.learning_rate) > 1 else []
    told += [f"{trial.epochs} epochs"] if len(config.epochs) > 1 else []
    return " ".join([name, *told])


def _saving(folder: Path, fitting: Fitting, found: EndedTrials) -> Callable[[bool], None]:
    """A function that saves a checkpoint: at once if called with True, else if the last one is old enough."""
    last = time.monotonic()

    def save(at_once: bool) -> None:
        nonlocal last
        if at_once or time.monotonic() - last >= SAVED_EVERY:
            save_checkpoint(folder, fitting, found)
            last = time.monotonic()

    return save
