"""The planned trainings of a comparison: the directory of each, and the settings that decide its outcome."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from bakeoff import checksums
from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.plan import Plan, SearchPlan, directory_name
from bakeoff.comparison.recipe_plan import RecipePlan
from bakeoff.comparison.results import Initialisation
from bakeoff.comparison.task_plan import TaskPlan
from bakeoff.config import Record, with_defaults
from bakeoff.display.wording import quoted
from bakeoff.durable import own_folder, remove
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.models.model import ModelConfig
from bakeoff.recipe import Recipe
from bakeoff.regular_files import open_regular
from bakeoff.same_settings import differences, require_same
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.registry import TASKS
from bakeoff.unfinished import ELSEWHERE

FAILURE = "failure.json"
"""The file in the directory of a training that has diverged."""


class Diverging(Record):
    """The content of failure.json, which stands in the directory of a training that diverged."""

    message: str
    """The error message of the divergence."""


@dataclass(frozen=True)
class PlannedTraining:
    """A pre-training or a fine-tuning, with its directory and the settings that decide its outcome."""

    directory: Path
    """The directory in which the training's run is written."""
    marker: str
    """The name of a file in the directory that exists only once the training has finished."""
    settings: dict[str, Any]
    """All values that decide the outcome; written beside the directory before the training begins."""

    @property
    def finished(self) -> bool:
        """Whether the training has finished, so that it is not run again."""
        if not (self.directory / self.marker).is_file() and self.directory.is_dir():
            checksums.require_present(self.directory / self.marker)  # or finished weights would be trained again
        return (self.directory / self.marker).is_file() and self._settings_file.is_file()

    @property
    def failure(self) -> str | None:
        """The error message of a divergence, which the same settings would most likely repeat; None: none happened."""
        path = self.directory / FAILURE
        return str(Diverging.check(read_json(path), str(path))["message"]) if path.is_file() else None

    def fail(self, message: str) -> None:
        """Write failure.json, so that the same plan does not try this training again."""
        self.directory.mkdir(parents=True, exist_ok=True)
        checksums.write(self.directory / FAILURE, json.dumps({"message": message}, ensure_ascii=False) + "\n")

    @property
    def _settings_file(self) -> Path:
        # Beside the directory and not in it: a new run wants to find an empty place.
        return self.directory.with_name(self.directory.name + ".settings.json")

    def check(self, key: str = "") -> None:
        """Refuse a directory that was made with other settings.

        The settings of a deleted directory, and of a diverged training that has changed, are forgotten instead.

        Args:
            key: the only setting that is compared, with the settings below it; left out: all settings.

        Raises:
            UserError: the directory was made with other settings, of which the message names the first that differs;
                or no comparison has made it.
        """
        if self._settings_file.is_file():
            old, now = _completed(read_json(self._settings_file)), self.settings
            if key:
                old, now = ({key: settings.get(key)} for settings in (old, now))
            changed = any(True for _ in differences(old, now))
            if not self.directory.exists() or (changed and self.failure is not None):
                self.discard()
                checksums.forget(self._settings_file.parent, [self._settings_file.name])
                self._settings_file.unlink()
                return
            require_same(self.directory, old, now, f"restore the plan, {ELSEWHERE}, or delete that directory")
        elif self.directory.exists():
            checksums.require_present(self._settings_file)
            raise UserError(f"{self.directory}: not made by a comparison; move it away or choose another --out")

    def discard(self, inside: Path | None = None) -> None:
        """Remove the directory, if it is there, in one step: a kill leaves all of it, or nothing under its name.

        Args:
            inside: the comparison's directory; no link may lead from there to this one.

        Raises:
            UserError: the directory holds a link.
        """
        aside = self.directory.with_name(f".{self.directory.name}.removed")
        remove(aside, inside)  # what a killed process has left
        if own_folder(self.directory, inside).exists():
            self.directory.rename(aside)
            remove(aside, inside)

    def begin(self) -> None:
        """Write the settings beside the directory, so that a later call can tell whether they changed."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        checksums.write(self._settings_file, json.dumps(self.settings, indent=1, ensure_ascii=False) + "\n")


def _completed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an older version, with defaults for the keys that recipes, searches and tasks have gained since."""
    completed = dict(settings)
    for key, config in (("recipe", Recipe), ("model", ModelConfig), ("search", SearchPlan)):
        if completed.get(key) is not None:
            completed[key] = with_defaults(completed[key], config)
    if "pretraining" in completed:
        completed["pretraining"] = _completed(completed["pretraining"])
    if "finetune" in completed:
        completed["finetune"] = with_defaults(completed["finetune"], FinetuneConfig)
        if (completed["finetune"]["epochs"], completed["finetune"]["least_steps"]) == ([10], 300):
            completed["finetune"] |= {"epochs": [], "least_steps": None}  # the defaults, as older versions wrote them
        completed = {**_task_defaults(completed.get("kind")), **completed}
    return completed


def _task_defaults(kind: Any) -> dict[str, Any]:
    """The defaults of a kind of task, without its name and its files; empty for an unknown kind."""
    config = TASKS.get(kind) if isinstance(kind, str) else None
    fields = {} if config is None else config.model_fields
    return {
        key: to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
        for key, field in fields.items()
        if not field.is_required() and key not in ("name", "dev", "test")
    }


@dataclass(frozen=True)
class PlannedSearch(PlannedTraining):
    """The search of one recipe's values."""

    recipe: RecipePlan

    @property
    def title(self) -> str:
        """The search in words: searching bert."""
        return f"searching {quoted(self.recipe.name)}"


def directory_of_search(out: Path, recipe: RecipePlan) -> Path:
    """The directory of a recipe's search."""
    return out / "searches" / directory_name(recipe.name)


@dataclass(frozen=True)
class PlannedPretraining(PlannedTraining):
    """The pre-training of one recipe with one seed."""

    recipe: RecipePlan
    seed: int

    @property
    def title(self) -> str:
        """The pre-training in words: pre-training bert."""
        return f"pre-training {quoted(self.recipe.name)}"


@dataclass(frozen=True)
class PlannedFinetuning(PlannedTraining):
    """The fine-tuning of one recipe, seed, task, initialisation and nested seed."""

    recipe: RecipePlan
    seed: int
    task: TaskPlan
    initialisation: Initialisation
    finetune_seed: int
    begins_from: PlannedPretraining
    """The pre-training of the same recipe and seed, whose weights the fine-tuning takes unless it is from scratch."""

    @property
    def title(self) -> str:
        """The fine-tuning in words: fine-tuning bert on reviews from scratch."""
        start = "" if self.initialisation == "pretrained" else " from scratch"
        return f"fine-tuning {quoted(self.recipe.name)} on {quoted(self.task.name)}{start}"

    @property
    def random_seed(self) -> int:
        """The seed of row order, head and dropout: another one for each seed and nested seed."""
        return self.seed + 1_000_003 * self.finetune_seed


@dataclass(frozen=True)
class PlannedTrainings:
    """All trainings of a plan, with the recipes, the budgets and the weights that decide their settings."""

    plan: Plan
    out: Path
    recipes: dict[str, dict[str, Any]]
    """The complete recipes, by label."""
    corpus: str
    """The corpus's fingerprint."""
    budgets: dict[str, str]
    """The budget of each recipe's pre-trainings, by label, such as `steps=1000`."""
    starts: Mapping[str, Mapping[int, StartFacts]] = field(default_factory=dict)
    """The runs that recipes start from, by label and seed."""

    def pretraining(self, recipe: RecipePlan, seed: int) -> PlannedPretraining:
        """The pre-training of a recipe with a seed."""
        directory = self.out / "runs" / directory_name(recipe.name) / f"seed-{seed}" / "pretrain"
        return PlannedPretraining(directory, "summary.json", self._before(recipe, seed), recipe, seed)

    def _before(self, recipe: RecipePlan, seed: int) -> dict[str, Any]:
        search = self.plan.search if recipe.search else None
        return {
            "search": None if search is None else search.model_dump(mode="json"),
            "recipe": self.recipes[recipe.name],
            "start": self.starts[recipe.name][seed].weights if recipe.name in self.starts else None,
            "budget": self.budgets[recipe.name],
            "seed": seed,
            "corpus": self.corpus,
            "device": self.plan.device,
        }

    def finetunings(self, recipe: RecipePlan, seed: int) -> Iterator[PlannedFinetuning]:
        """The fine-tunings of a recipe with a seed: on every task, nested ones, pre-trained and from scratch."""
        starts: tuple[Initialisation, ...] = ("pretrained", "scratch") if self.plan.from_scratch else ("pretrained",)
        for task in self.plan.tasks:
            for nested in range(self.plan.finetune_seeds):
                for start in starts:
                    yield self._finetuning(recipe, seed, task, start, nested)

    def _finetuning(
        self, recipe: RecipePlan, seed: int, task: TaskPlan, start: Initialisation, nested: int
    ) -> PlannedFinetuning:
        before = self.pretraining(recipe, seed)
        directory = before.directory.parent / directory_name(task.name) / f"{start}-{nested}"
        settings = {**self.tasks[task.name], "finetune_seed": nested}
        if None not in (task.data.dev, task.data.test):
            del settings["cluster_column"]  # which then decides verdicts, and nothing that is trained
        # From random weights nothing of the pre-training matters but the model and the tokenizer.
        settings["pretraining"] = (
            self._before(recipe, seed)
            if start == "pretrained"
            else {"model": self.recipes[recipe.name].get("model"), "corpus": self.corpus, "seed": seed}
        )
        return PlannedFinetuning(directory, "results.json", settings, recipe, seed, task, start, nested, before)

    def renewed(self, training: PlannedPretraining | PlannedFinetuning) -> PlannedPretraining | PlannedFinetuning:
        """The training with the recipes and budgets of these, which may be newer than its own."""
        if isinstance(training, PlannedPretraining):
            return self.pretraining(training.recipe, training.seed)
        return self._finetuning(
            training.recipe, training.seed, training.task, training.initialisation, training.finetune_seed
        )

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The settings of each task, by name; files count by a checksum, so that a moved folder is no change."""
        return {
            task.name: {
                **{key: value for key, value in task.model_dump(mode="json").items() if key not in ("name", *files)},
                "files": {split: _digest(path) for split, path in files.items()},
                # Older versions took the first ones; what these have learned from is not to be mixed with it.
                **({} if task.data.train_rows is None else {"train_rows_chosen": "of every class its share"}),
            }
            for task, files in ((task, task.files) for task in self.plan.tasks)
        }

    def all(self) -> Iterator[PlannedPretraining | PlannedFinetuning]:
        """Every training, in the order in which they run: all recipes of a seed, then the next seed."""
        for seed in self.plan.seeds:
            for recipe in self.plan.recipes:
                yield self.pretraining(recipe, seed)
                yield from self.finetunings(recipe, seed)


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
