"""Everything about a fine-tuning that is decided before a head is built: its rows, its settings, its inputs."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.models.dropouts import with_dropout
from bakeoff.models.layer_map import unshared
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.stored_tensors import digest_of
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Setting, TaskSplit
from bakeoff.tasks.fitting.resolution import lengthened, resolve_finetuning
from bakeoff.tasks.fitting.starting_point import StartingPoint
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.task_config import TaskConfig


class Settled(NamedTuple):
    """A fine-tuning as it will be run."""

    task: TaskConfig
    """The task as it was asked for, before its data settled it."""
    source: StartingPoint
    """The starting point, its recipe as it is fine-tuned."""
    setting: Setting
    """The settings, with everything decided."""
    splits: dict[str, TaskSplit]
    """train, dev and test."""
    cut: dict[str, CutRows]
    """The rows of each of which a part is not read."""
    planned_epochs: list[int]
    """The numbers of epochs before `least_steps` made them more."""
    data_notes: list[str]
    """Notes to readers of the results on the files."""

    @property
    def placement(self) -> Placement:
        """The device, and the precision of products."""
        return self.setting.placement

    @property
    def items(self) -> int:
        """The number of items to learn from."""
        return len(self.splits["train"].items.owners)

    def with_micro_batch(self, size: int | None) -> "Settled":
        """The same fine-tuning with so many items at once."""
        return self._replace(setting=self.setting._replace(micro_batch=size))

    def asked(self) -> dict[str, Any]:
        """All inputs on which the result depends, by the words with which an error names them."""
        run, setting = self.source.run, self.setting
        data = hashlib.sha256()
        for split in self.splits.values():
            encoded, targets = split.items.encoded, split.items.targets
            for array in (*encoded.ids, encoded.second, split.items.bounds, split.items.owners):
                data.update(array.tobytes())
            for target in targets:
                data.update(target.tobytes() if isinstance(target, np.ndarray) else repr(target).encode())
        return {
            "recipe": self.source.recipe.model_dump(mode="json"),
            "run_to_start_from": None if run is None else digest_of(run.path / "model.safetensors"),
            "task": self.task.model_dump(mode="json"),
            "setting_of_the_training": setting.config.model_dump(mode="json"),
            "set_of_labels": json.loads(json.dumps(setting.task.labels)),
            "content_of_the_files": data.hexdigest(),
            "seed": setting.seed,
            "device": self.placement.device.type,
            "precision": self.placement.precision,
        }


def settle(
    source: StartingPoint,
    task: TaskConfig,
    config: FinetuneConfig,
    seed: int,
    device: str,
    processes: Processes = ALONE,
) -> Settled:
    """Read the data, and decide on everything that depends on it, on the model and on the machine.

    Raises:
        UserError: a mistake in the data, or in a setting that is not for this model or this kind of task.
    """
    task.require_model(source.recipe)
    config = resolve_finetuning(source.continued(config), source.recipe, task)
    data = load_task(task)
    on = resolve_device(device)
    placement = Placement(on, resolve_precision(source.precision, on))
    source = source._replace(recipe=_recipe(source.recipe, config, placement.precision))
    assert config.length is not None
    format = InputFormat(source.tokenizer, source.recipe, config.length, config.truncate, config.separators)
    examples = {"train": data.train, "dev": data.dev, "test": data.test}
    splits = {name: TaskSplit(part, data.task.encode(part, format)) for name, part in examples.items()}
    cut = {name: CutRows.of(split.items, format.length) for name, split in splits.items()}
    planned, config = config.epochs, lengthened(config, len(splits["train"].items.owners))
    given = None if config.micro_batch == "auto" else config.micro_batch
    sizes = config.batch, 1 if config.micro_batch == "auto" else given or config.batch, "rows"
    processes.require_shares(source.recipe.name, *sizes, "--option micro_batch={}")
    setting = Setting(config, data.task, format, seed, placement, processes, given, source.recipe.name)
    return Settled(task, source, setting, splits, cut, planned, data.notes)


def _recipe(recipe: Recipe, config: FinetuneConfig, precision: str) -> Recipe:
    """The recipe as it is fine-tuned."""
    changes: dict[str, Any] = {"training.precision": precision}
    if config.model_dropout is not None:
        changes["model"] = with_dropout(recipe.model, config.model_dropout).model_dump(mode="json")
    if config.unshare:
        changes |= unshared(recipe.model)
    return recipe.changed(changes)
