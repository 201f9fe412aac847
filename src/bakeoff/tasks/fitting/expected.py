"""How long a fine-tuning will take, from a few measured steps of it."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.tasks.fitting.settling import Settled, settle
from bakeoff.tasks.fitting.starting_point import new_head, open_source
from bakeoff.tasks.fitting.trials import planned_trials
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.trainer.step import NORM, optimize

MEASURED = 3
"""Number of steps that are measured, after a first one, which is slower."""

FORWARD = 1 / 3
"""Share of a training step's operations that is in its forward pass, the whole cost of an evaluation."""


def step_of(settled: Settled) -> Callable[[int], float]:
    """A function that does a step, with its number, of the first training of a fine-tuning, on a head of its own."""
    setting, splits = settled.setting, settled.splits
    trial = planned_trials(setting.config)[0]
    unit = Fitting(new_head(settled.source, setting)[0], splits["train"], splits["dev"], trial, setting)
    unit.begin()
    return lambda step: float(optimize(unit, unit.batches(step % unit.steps), step)[NORM])


def steps_of(settled: Settled) -> int:
    """Number of steps of all trainings of a fine-tuning together, if none is stopped early."""
    config = settled.setting.config
    return config.epoch_steps(settled.items) * sum(trial.epochs for trial in planned_trials(config))


def expected_seconds(recipe: Recipe, tokenizer: Path, task: TaskConfig, config: FinetuneConfig, device: str) -> float:
    """Seconds of a fine-tuning of a recipe, its evaluations included, if none of its trainings is stopped early.

    Args:
        recipe: the recipe; its weights do not matter for the time.
        tokenizer: a directory with the tokenizer.
        task: the task.
        config: the settings of the fine-tuning.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: a mistake in the data or the settings.
    """
    settled = settle(open_source(recipe, tokenizer), task, config, 0, device)
    config, step = settled.setting.config, step_of(settled)
    step(0)
    seconds = median(_seconds(step, index) for index in range(1, 1 + MEASURED))
    evaluated = len(planned_trials(config)) * config.evaluations * len(settled.splits["dev"].items.owners)
    evaluated += sum(len(settled.splits[name].items.owners) for name in ("dev", "test"))
    return seconds * (steps_of(settled) + FORWARD * evaluated / config.batch)


def _seconds(step: Callable[[int], float], index: int) -> float:
    began = time.perf_counter()
    step(index)
    return time.perf_counter() - began
