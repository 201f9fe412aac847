"""The training loop: steps, metrics, validation, checkpoints, interruption."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

import torch

from bakeoff.batching.ahead import ahead
from bakeoff.errors import Diverged, Interrupted
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.learner.running_average import RunningAverage
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, work_clock
from bakeoff.runs.checkpoint import list_checkpoints, load_checkpoint, save_checkpoint
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.training.averaging import save_snapshot, snapshot_steps
from bakeoff.training.early_stop import BEST, EarlyStop
from bakeoff.training.position import Position
from bakeoff.training.progress import TrainingProgress
from bakeoff.training.saving import Saver
from bakeoff.training.stages import Stages
from bakeoff.training.step import optimize
from bakeoff.training.validation import HeldOut, validate

FEWEST_STEPS_BETWEEN_VALIDATIONS = 25
"""The fewest steps from one validation to the next, so that a short training does not spend its time on validation."""

READ_EVERY = {"cpu": 1, "cuda": 16, "mps": 16}
"""Number of steps after which figures are read from the device; every reading waits for the device."""

FIRST_CHECKPOINT = 1.0
"""Minutes until a training's first checkpoint; a training that is killed early would else begin at its start."""

TRAIN_LINES = 200
"""Number of lines on the training loss in metrics.jsonl, over a whole training."""


def validation_steps(validations: int, steps: int) -> list[int]:
    """The steps after which the held-out loss is measured, in rising order; the first is 0, the last is the end."""
    count = max(1, min(validations, steps // FEWEST_STEPS_BETWEEN_VALIDATIONS))
    return sorted({0} | {round(steps * (i + 1) / count) for i in range(count)})


class Training:
    """One pre-training from its start or a checkpoint to its end.

    Args:
        run: the run's directory.
        recipe: the recipe, its budget in steps.
        module: the model with its heads, on the device.
        batches: the batches of the training text, in the stages of the recipe's curriculum.
        held_out: the held-out text, and the batches of it that the loss is measured on.
        seed: the run's seed.
        placement: where the module is, and its precision.
        progress: where figures are shown.
        watch: called with the position of the training whenever figures are read; an exception of it ends the training.
        saver: keeps the weights after some points; None: at none.
    """

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        module: PretrainingModel,
        batches: Stages,
        held_out: HeldOut,
        seed: int,
        placement: Placement,
        progress: TrainingProgress,
        watch: Callable[[Position], None] | None = None,
        saver: Saver | None = None,
    ) -> None:
        self.run, self.recipe, self.module, self.batches = run, recipe, module, batches
        self.held_out, self.seed, self.placement, self.progress = held_out, seed, placement, progress
        assert recipe.training.budget.steps is not None
        self.steps = recipe.training.budget.steps
        self.optimizer = recipe.training.optimizer.build(module, placement.precision)
        self.memory = Memory(module.model) if recipe.input.continues else None
        share = recipe.training.running_average
        self.average = RunningAverage(module, share * self.steps) if share else None
        self.position = Position()
        self.validation_steps = set(validation_steps(recipe.training.validations, self.steps))
        self.snapshot_steps = set(snapshot_steps(self.steps, recipe.training.average_last))
        self.log_every = max(1, self.steps // TRAIN_LINES)
        self.last_validation: dict[str, Any] = {}
        self.early_stop = EarlyStop(recipe.training.early_stopping)
        self.unread: list[tuple[int, torch.Tensor]] = []  # tokens and figures of steps whose figures are on the device
        self.read_every = READ_EVERY[placement.device.type]
        self.read_at = (0.0, 0.0)
        self.watch, self.saver = watch, saver
        self.saved_step = 0

    @property
    def over(self) -> bool:
        """Whether the training has reached its end, or early stopping has ended it."""
        return self.position.step >= self.steps or self.early_stop.over

    def resume(self) -> bool:
        """Continue from the newest checkpoint; returns False if there is none."""
        checkpoints = list_checkpoints(self.run.checkpoints)
        if not checkpoints:
            self.run.metrics_file.clear()
            return False
        state = load_checkpoint(checkpoints[-1], self.module, self.optimizer, self.memory, self.average)
        self.position = Position(**{name: state[name] for name in asdict(Position()) if name in state})
        self.saved_step = self.position.step
        self.run.metrics_file.restore(state.get("metrics"), self.position.step)
        lines = [line for line in self.run.metrics() if line["kind"] == "validation"]
        self.last_validation = lines[-1] if lines else {}
        self.early_stop.load(checkpoints[-1], lines)
        return True

    def train(self, until: int | None = None) -> None:
        """Run to the end, or until a step and save a checkpoint there.

        Raises:
            Interrupted: a signal came; everything is saved.
            Diverged: the loss is not a number any more; the last checkpoint stays.
        """
        position = self.position
        self.module.train()
        saved_at = time.monotonic()
        with stop_signals() as stopping:
            if position.step == 0 and not self.last_validation:
                self._validate()
            self.read_at = self._now()
            last = position.step if self.over else min(until or self.steps, self.steps)
            for micro_batches in ahead(self.batches.step, position.step, max(last, position.step)):
                means = optimize(
                    self.module,
                    self.optimizer,
                    micro_batches,
                    self.recipe,
                    self.seed,
                    position.step,
                    self.placement,
                    self.early_stop.losses,
                    self.memory,
                )
                if self.average is not None:
                    self.average.update()
                position.step += 1
                tokens = sum(batch.tokens for batch in micro_batches)
                saves = [] if self.saver is None else self.saver.reached(self, tokens)
                self.unread.append((tokens, torch.stack(list(means.values()))))
                # A line is on steps of a single stage, because stages may train different objectives.
                ends = self.batches.at(position.step) != self.batches.at(position.step - 1)
                logs = position.step % self.log_every == 0 or position.step == self.steps or ends
                validates = position.step in self.validation_steps
                due = time.monotonic() - saved_at > 60 * self._minutes_between_checkpoints
                due = due or position.step == until
                kept = position.step in self.snapshot_steps
                if logs or validates or due or kept or saves or stopping or len(self.unread) >= self.read_every:
                    self._read(list(means))
                if logs:
                    self._log()
                if validates:
                    self._validate()
                if kept:
                    save_snapshot(self.run, position.step, self.module)
                if self.saver is not None and saves:
                    self.saver.save(self, saves)
                caught = stopping[0] if stopping else None  # read once, because a signal may come at any time
                if (due or caught is not None) and position.step < self.steps:
                    self._read(list(means))
                    self.save()
                    saved_at = time.monotonic()
                if validates or due or kept or saves:
                    self.read_at = self._now()
                if self.over:
                    break
                if caught is not None:
                    raise Interrupted(
                        f"stopped at step {position.step}; the same command with --resume continues it, with "
                        "--finish-now ends it as it is",
                        caught,
                    )

    @property
    def _minutes_between_checkpoints(self) -> float:
        minutes = self.recipe.training.checkpoint_minutes
        return minutes if self.saved_step else min(minutes, FIRST_CHECKPOINT)

    def end_here(self) -> None:
        """End the training at its current step, with a last measurement of the held-out loss."""
        if self.last_validation.get("step") != self.position.step:
            self._validate()

    def save(self) -> None:
        """Write the metrics and then a checkpoint; a resumed training reads its held-out losses from the metrics."""
        self.run.metrics_file.sync()
        state = {**asdict(self.position), "metrics": self.run.metrics_file.mark()}
        with self.run_weights():
            others = {"trained": None if self.average is None else self.average.tensors, BEST: self.early_stop.best}
            where = self.run.checkpoints, self.position.step
            save_checkpoint(*where, self.module, self.optimizer, state, self.memory, others)
        self.saved_step = self.position.step

    def take_run_weights(self) -> None:
        """Give the module the run's final weights: the best, the running average, or those of the last step."""
        if self.average is not None:
            self.average.exchange()
            self.average = None
        self.early_stop.take_best(self.module)

    def run_weights(self) -> AbstractContextManager[None]:
        """A context in which the module has the weights that are measured and saved."""
        return nullcontext() if self.average is None else self.average.in_use()

    def _read(self, names: list[str]) -> None:
        """Wait for the device and add up the figures of the steps since the last reading, in the order of their names.

        Raises:
            Diverged: a figure is not a finite number.
        """
        position = self.position
        if not self.unread:
            return
        rows = torch.stack([values for _, values in self.unread]).tolist()
        before, self.read_at = self.read_at, self._now()
        seconds = self.read_at[0] - before[0]
        position.work_seconds += self.read_at[1] - before[1]
        for index, row in enumerate(rows):
            self._require_finite(dict(zip(names, row, strict=True)), position.step - len(rows) + index + 1)
            for name, value in zip(names, row, strict=True):
                position.sums[name] = position.sums.get(name, 0.0) + value
        tokens = sum(tokens for tokens, _ in self.unread)
        position.tokens += tokens
        for index, (own, _) in enumerate(self.unread):
            position.flops += own * self.batches.flops_at(position.step - len(rows) + index)
        position.seconds += seconds
        position.since += len(rows)
        position.since_tokens += tokens
        position.since_seconds += seconds
        self.unread.clear()
        weights = self.recipe.weights_at(position.step - 1)
        loss = sum(weights[name] * value for name, value in zip(names, rows[-1], strict=True) if name in weights)
        rate = position.since_tokens / position.since_seconds
        self.progress.step(position.step, loss, rate, (self.steps - position.step) * position.seconds / position.step)
        if self.watch is not None:
            self.watch(position)

    def _now(self) -> tuple[float, float]:
        """Seconds on the clock, and seconds of work by `work_clock`."""
        return time.perf_counter(), work_clock(self.placement.device)

    def _require_finite(self, figures: dict[str, float], step: int) -> None:
        bad = [name for name, value in figures.items() if not math.isfinite(value)]
        if not bad:
            return
        checkpoints = list_checkpoints(self.run.checkpoints)
        last = f"; the last good checkpoint is {checkpoints[-1].name}" if checkpoints else ""
        raise Diverged(
            f"{self.run.path}: {bad[0].replace('_', ' ')} is not a finite number at step {step}{last}; "
            "try a lower learning rate (--set training.optimizer.lr=...), a longer warm-up, or precision float32"
        )

    def _log(self) -> None:
        position = self.position
        means = {name: total / position.since for name, total in position.sums.items()}
        norm = means.pop("gradient_norm")
        training = self.recipe.training
        weights = self.recipe.weights_at(position.step - 1)
        self.run.metrics_file.append(
            {
                "kind": "train",
                **self.position.counters(self.batches.words_per_token),
                "loss": sum(weights[name] * mean for name, mean in means.items()),
                "losses": {name: mean for name, mean in means.items() if weights[name] > 0},
                "gradient_norm": norm,
                "learning_rate": training.optimizer.rate
                * training.schedule.factor(position.step - 1, self.steps, self.early_stop.losses),
                "tokens_per_second": round(position.since_tokens / position.since_seconds, 1),
            }
        )
        position.sums, position.since, position.since_tokens, position.since_seconds = {}, 0, 0, 0.0

    def _validate(self) -> None:
        with self.run_weights():
            self.last_validation = self._measured()
            if self.position.step > 0:
                self.last_validation = self.early_stop.observe(self.last_validation, self.module)
        self.run.metrics_file.append(self.last_validation)
        self.progress.validated(self.position.step, self.last_validation["losses"])

    def measured_here(self) -> dict[str, Any]:
        """The validation of the present weights: the last one, if it was made at this step, or else a new one."""
        return self.last_validation if self.last_validation.get("step") == self.position.step else self._measured()

    def _measured(self) -> dict[str, Any]:
        figures = validate(self.module, self.held_out, self.placement)
        numbers = {f"held-out {name}": loss for name, loss in figures["losses"].items() if loss is not None}
        self._require_finite(numbers, self.position.step)
        return {"kind": "validation", **self.position.counters(self.batches.words_per_token), **figures}
