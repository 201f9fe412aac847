"""The starting point of a fine-tuning: a recipe, a tokenizer and weights."""

from pathlib import Path
from typing import Literal, NamedTuple

import torch

from bakeoff.errors import UserError, path_of
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.fitting import Setting
from bakeoff.tasks.heads.depths import fresh_tensors
from bakeoff.tasks.heads.heads import HeadedModel, transfer
from bakeoff.tasks.task import Task
from bakeoff.tokenizer.tokenizer import Tokenizer

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


def open_source(source: str | Path | Run | Recipe, tokenizer: str | Path | None) -> StartingPoint:
    """The starting point of a fine-tuning.

    Raises:
        UserError: no finished pre-trained run, or not exactly one tokenizer.
    """
    if isinstance(source, Recipe):
        if tokenizer is None:
            raise UserError(f"{source.name}: from scratch, the tokenizer is needed; give --corpus or --tokenizer")
        loaded = Tokenizer.load(tokenizer)
        return StartingPoint(source.with_tokenizer(loaded.config), loaded, None)
    path = source.path if isinstance(source, Run) else path_of(source)
    if tokenizer is not None:
        raise UserError(f"{path}: a run has its own tokenizer; leave --corpus and --tokenizer out, or name a recipe")
    if FinetunedRun.at(path):
        tuned = FinetunedRun.open(path)
        tuned.require_current()
        tuned.require_sizes()
        return StartingPoint(tuned.recipe, tuned.tokenizer, Run(path), tuned.learned, tuned.config)
    run = Run.open_finished(path)
    run.require_sizes()
    return StartingPoint(run.recipe, run.tokenizer, run)


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
