"""The files with the settings of a fine-tuning: its recipe, the task, the training, and the machine."""

import json
from pathlib import Path
from typing import Any

from bakeoff.durable import write_atomically
from bakeoff.json_files import read_json
from bakeoff.reading.hub import on_hub
from bakeoff.recipe import Recipe
from bakeoff.runs.records import Environment
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.yaml_files import dump_yaml, parse_yaml

SETTINGS, ENVIRONMENT = "task.yaml", "environment.json"


def write_settings(
    folder: Path,
    recipe: Recipe,
    tokenizer: Tokenizer,
    task: TaskConfig,
    config: FinetuneConfig,
    machine: dict[str, Any],
) -> None:
    """Write the tokenizer, the recipe, the settings with everything decided, and the description of the machine."""
    tokenizer.save(folder / "tokenizer.json")
    # Absolute paths, because an evaluation may run in another folder.
    paths = {name: value for name in type(task).model_fields if isinstance(value := getattr(task, name), Path)}
    whole = task.model_copy(update={name: path if on_hub(path) else path.absolute() for name, path in paths.items()})
    settings = {"task": whole.model_dump(mode="json"), "finetune": config.model_dump(mode="json")}
    write_atomically(folder / "recipe.yaml", recipe.to_yaml())  # --resume reads what is there before it comes here
    _write(folder, settings, machine)


def _write(folder: Path, settings: dict[str, Any], machine: dict[str, Any]) -> None:
    write_atomically(folder / SETTINGS, dump_yaml(settings))
    write_atomically(folder / ENVIRONMENT, json.dumps(machine, indent=2) + "\n")


def begun_on(folder: Path) -> dict[str, Any] | None:
    """The description of the machine on which the fine-tuning in a folder was begun; None: there is none.

    Raises:
        UserError: it is damaged.
    """
    path = folder / ENVIRONMENT
    return Environment.check(read_json(path), str(path)) if path.is_file() else None


def decided_micro_batch(folder: Path) -> int | None:
    """The `micro_batch` in the settings of an unfinished fine-tuning; None: the whole batch.

    Raises:
        UserError: they are damaged.
    """
    config = FinetuneConfig.parse(_settings(folder)["finetune"], f"{folder / SETTINGS}: finetune")
    assert config.micro_batch != "auto"
    return config.micro_batch


def record_micro_batch(folder: Path, change: dict[str, Any]) -> None:
    """Write another `micro_batch` into the settings of an unfinished fine-tuning, and from which step on it holds."""
    settings, machine = _settings(folder), begun_on(folder)
    assert machine is not None
    settings["finetune"]["micro_batch"] = change["micro_batch"]
    _write(folder, settings, {**machine, "micro_batches": [*machine.get("micro_batches", []), change]})


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    settings: dict[str, Any] = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    return settings
