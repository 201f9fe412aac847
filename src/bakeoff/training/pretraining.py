"""What a pre-training trains: the model on the objectives of its recipe, batch by batch of the corpus."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from bakeoff.batching.batch import Batch
from bakeoff.batching.widths import Widths, widened, widths_of
from bakeoff.display.wording import number as in_words
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.objectives.held_out import at_most
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.resources.micro_batch import Size, plain_size
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.tensors import load_tensors
from bakeoff.trainer.position import Position
from bakeoff.trainer.step import NORM
from bakeoff.trainer.unit import SPARE, Evaluation, Unit
from bakeoff.training.early_stop import BEST, EarlyStop
from bakeoff.training.stages import Stages
from bakeoff.training.teachers import Teachers
from bakeoff.training.validation import HeldOut, validate

FEWEST_STEPS_BETWEEN_VALIDATIONS = 25
"""The fewest steps from one validation to the next, so that a short training does not spend its time on validation."""

TRAIN_LINES = 200
"""Number of lines on the training loss in metrics.jsonl, over a whole training."""

ON_CPU = Placement(torch.device("cpu"), "float32")

MEMORY = "memory"
"""The name of a checkpoint's file with the states of rows that continue each other."""


def validation_steps(validations: int, steps: int) -> list[int]:
    """The steps after which the held-out loss is measured, in rising order; the first is 0, the last is the end."""
    count = max(1, min(validations, steps // FEWEST_STEPS_BETWEEN_VALIDATIONS))
    return sorted({0} | {round(steps * (i + 1) / count) for i in range(count)})


class Pretraining(Unit[Batch]):
    """A model with its heads, and the text that it learns from.

    Args:
        recipe: the recipe, its budget in steps.
        module: the model with its heads, on the device.
        placement: where the module is, and its precision.
        seed: the run's seed.
        optimizer: the optimizer of the module; None: the recipe's.
        stages: the batches of the training text, in the stages of the recipe's curriculum; left out where steps are
            taken on given batches.
        held_out: the held-out text, and the batches of it that the loss is measured on; left out where nothing is
            measured.
        run: the run; left out where steps are taken alone.
        processes: the processes that train the model together.
        fits_memory: micro-batches were made as large as memory allows, and become smaller where it does not.
        teachers: the runs whose probabilities are learned, too; None: there are none.

    Attributes:
        last_validation: the last validation; empty before the first one.
        early_stop: the held-out losses so far, and what follows from them.
    """

    module: PretrainingModel

    def __init__(
        self,
        recipe: Recipe,
        module: PretrainingModel,
        placement: Placement = ON_CPU,
        seed: int = 0,
        optimizer: torch.optim.Optimizer | None = None,
        stages: Stages | None = None,
        held_out: HeldOut | None = None,
        run: Run | None = None,
        processes: Processes = ALONE,
        fits_memory: bool = False,
        teachers: Teachers | None = None,
    ) -> None:
        training = recipe.training
        self.recipe, self.module, self.placement, self.seed, self._run = recipe, module, placement, seed, run
        self.processes, self.teachers = processes, teachers
        self.optimizer = optimizer or training.optimizer.build(module, placement.precision)
        self._stages, self._held_out, self.title = stages, held_out, recipe.name
        # Where rows depend on each other, other parts would be another training.
        self.fits_memory = fits_memory and module.model.independent_rows
        self.replayed = any(stack.replayed for stack in module.model.stacks().values())
        self.steps, self.clip = training.budget.steps or 1, training.clip
        self.learning_rate = training.optimizer.rate
        self.average = training.average
        self.memory = Memory(module.model) if recipe.input.continues else None
        self.early_stop = EarlyStop(training.early_stopping)
        self.last_validation: dict[str, Any] = {}
        self._log_every = max(1, self.steps // TRAIN_LINES)

    @cached_property
    def evaluations(self) -> set[int]:  # type: ignore[override]
        """The steps of validations."""
        return set(validation_steps(self.recipe.training.validations, self.steps))

    @property
    def stages(self) -> Stages:
        """The batches of the training text."""
        assert self._stages is not None
        return self._stages

    @property
    @override
    def over(self) -> bool:
        return self.early_stop.over

    @property
    @override
    def how_to_go_on(self) -> str:
        return "the same command with --resume continues it, with --finish-now ends it as it is"

    @override
    def batches(self, step: int) -> list[Batch]:
        return self._sent_ahead(self.stages.step(step))

    def _sent_ahead(self, batches: list[Batch]) -> list[Batch]:
        """Batches with what the device needs of them, in memory that it reads from by itself."""
        device = self.placement.device
        return batches if device.type == "cpu" else [self.module.with_parts(each).pinned(device) for each in batches]

    @property
    @override
    def micro_batch(self) -> Size:
        return self.recipe.training.at_once

    @override
    def note(self) -> None:
        if self.memory is not None:
            self.memory.note()

    @override
    def cut(self, size: Size) -> None:
        self.recipe = self.recipe.changed({"training.micro_batch": plain_size(size)})
        self._stages = self.stages.in_other_parts(self.recipe)
        if self.memory is not None:
            self.memory.go_back(self.processes)

    @override
    def record(self, change: dict[str, Any]) -> None:
        if self._run is not None:
            environment = self._run.environment
            changes = [*environment.get("micro_batches", []), change]
            self._run.replace_recipe(self.recipe.changed({"training.micro_batch": change["micro_batch"]}))
            self._run.replace_environment({**environment, "micro_batches": changes})

    @override
    def counts(self, micro_batches: Sequence[Batch]) -> dict[str, float]:
        names = self.module.weights
        return {name: sum(each.count(name) for each in micro_batches) for name in names}

    @override
    def widths(self, micro_batches: Sequence[Batch]) -> Widths:
        return widths_of(micro_batches)

    @override
    def widened(self, batch: Batch, widths: Widths) -> Batch:
        pad = 0 if self._stages is None else self._stages.pad
        return widened(batch, widths, pad, self.recipe.model.directions)

    @override
    def losses(self, batch: Batch, counts: dict[str, float]) -> dict[str, Tensor]:
        moved = batch.to(self.placement.device)
        with self.placement.autocast():
            taught = {} if self.teachers is None else self.teachers.scores(moved)
            before = None if self.memory is None else self.memory.before(batch)
            sums, after = self.module(moved, before, scores=taught)
        if self.memory is not None:
            self.memory.keep(batch.number, after)
        return {name: total / counts[name] for name, total in sums.items()}

    @override
    def spare(self, micro_batches: Sequence[Batch]) -> Batch:
        if not micro_batches:
            micro_batches = self._sent_ahead([self.stages.spare()])
        return replace(micro_batches[-1], number=SPARE)

    @override
    def enter(self, step: int) -> None:
        if self._stages is not None and self._stages.dropouts is not None:
            self._stages.dropouts.set(self.module, self._stages.at(step))

    @override
    def weights(self, step: int) -> dict[str, float]:
        return self.recipe.weights_at(step)

    @override
    def of_schedule(self, step: int) -> float:
        return self.recipe.training.schedule.factor(step, self.steps, self.early_stop.losses)

    @override
    def decay_factor(self, step: int) -> float:
        schedule = self.recipe.training.decay_schedule
        return 1.0 if schedule is None else schedule.factor(step, self.steps, self.early_stop.losses)

    @override
    def flops(self, step: int) -> int:
        return self.stages.flops_at(step)

    @override
    def logs(self, step: int) -> bool:
        # A line is on steps of a single stage, because stages may train different objectives.
        ends = self.stages.at(step) != self.stages.at(step - 1)
        return step % self._log_every == 0 or step == self.steps or ends

    @override
    def log(self, position: Position) -> dict[str, Any]:
        means = position.means()
        norm = means.pop(NORM)
        weights = self.weights(position.step - 1)
        return {
            "kind": "train",
            **position.counters(self.stages.words_per_token),
            "loss": sum(weights[name] * mean for name, mean in means.items()),
            "losses": {name: mean for name, mean in means.items() if weights[name] > 0},
            "gradient_norm": norm,
            "learning_rate": self.learning_rate * self.factor(position.step - 1),
            "tokens_per_second": round(position.since_tokens / position.since_seconds, 1),
        }

    @override
    def evaluate(self, position: Position) -> Evaluation:
        validation = self.measured(position)
        if position.step > 0:
            validation = self.early_stop.observe(validation, self.module)
        self.last_validation = validation
        losses = validation["losses"]
        shown = " ".join(f"{name} {at_most(name)}{in_words(loss, 3)}" for name, loss in losses.items())
        return Evaluation(validation, f"held-out {shown}")

    def measured_here(self, position: Position) -> dict[str, Any]:
        """The validation of the present weights: the last one, if it was made at this step, or else a new one."""
        at_this_step = self.last_validation.get("step") == position.step
        return self.last_validation if at_this_step else self.measured(position)

    def measured(self, position: Position) -> dict[str, Any]:
        """A validation of the present weights, as metrics.jsonl has it.

        Raises:
            Diverged: a loss is not a finite number.
        """
        assert self._held_out is not None
        figures = validate(self.module, self._held_out, self.placement, self.processes)
        losses = {f"held-out {name}": loss for name, loss in figures["losses"].items() if loss is not None}
        self.require_finite(losses, position.step)
        return {"kind": "validation", **position.counters(self.stages.words_per_token), **figures}

    @override
    def diverged(self, name: str, step: int) -> str:
        checkpoints = [] if self._run is None else list_checkpoints(self._run.checkpoints)
        last = f"; the last good checkpoint is {checkpoints[-1].name}" if checkpoints else ""
        where = self.recipe.name if self._run is None else self._run.path
        precise = "" if self.recipe.training.precision == "float32" else ", or training.precision=float32"
        return (
            f"{where}: {name} is not a finite number at step {step}{last}; try a lower learning rate "
            f"(training.optimizer.lr), a longer warm-up (training.schedule.warmup){precise}"
        )

    @override
    def state(self) -> dict[str, Any]:
        return {}

    @override
    def tensors(self) -> dict[str, dict[str, Tensor]]:
        tensors = {} if self.memory is None else {MEMORY: self.memory.whole(self.processes)}
        return tensors if self.early_stop.best is None else {**tensors, BEST: self.early_stop.best}

    @override
    def load(self, checkpoint: Path, state: dict[str, Any], lines: Sequence[dict[str, Any]]) -> None:
        if self.memory is not None:
            self.memory.load(load_tensors(checkpoint / f"{MEMORY}.safetensors"))
        validations = [line for line in lines if line["kind"] == "validation"]
        self.last_validation = validations[-1] if validations else {}
        self.early_stop.load(checkpoint, validations, self.module)

    def take_best(self) -> None:
        """Give the module the best weights so far, where early stopping keeps them."""
        self.early_stop.take_best(self.module)
