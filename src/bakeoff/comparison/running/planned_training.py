"""A training of a comparison: its directory, and the settings that decide its outcome."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from bakeoff import checksums
from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.search_plan import SearchPlan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.config import with_defaults
from bakeoff.digests import digest
from bakeoff.durable import own_folder, remove
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.models.model import ModelConfig
from bakeoff.reading.hub import on_hub
from bakeoff.recipe import Recipe
from bakeoff.runs.records import divergence, note_divergence
from bakeoff.same_settings import differences, require_same
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.registry import TASKS
from bakeoff.unfinished import ELSEWHERE

SCRATCH = "from_scratch"
"""The key of what a fine-tuning from scratch reads of a recipe beside its model."""
DIGESTS = ("corpus", "start", "text", "pretraining.corpus", "pretraining.start")
"""The settings that are a digest, which says nothing to a reader."""
TEACHER = "teacher"
"""The key of the digests of the runs that a recipe learns from, by their names."""
OF_FILE = "content of "
"""What stands before the name of a file, such as that of a split, where its digest has changed."""
WRITTEN_OUT = {"epochs": [10], "least_steps": 300}
"""The defaults of a fine-tuning, as older versions wrote them."""
LEFT_OUT: dict[str, Any] = {"epochs": [], "least_steps": None}
"""The same, as they are written now: to be decided by the model and the rows."""


def settings_beside(directory: Path) -> Path:
    """The file of a training's settings: beside its directory, for a new run wants to find an empty place."""
    return directory.with_name(directory.name + ".settings.json")


def of_task(above: Path, task: TaskPlan, name: str) -> Path:
    """The directory of a fine-tuning on a task.

    A point of a curve over labels that was fine-tuned on before the task had several numbers of rows stays there.

    Args:
        above: the directory of the recipe and seed.
        task: the task.
        name: the name of the fine-tuning among those on the task.
    """
    if task.point is not None:
        before = above / directory_name(task.point.curve) / name
        settings = settings_beside(before)
        if settings.is_file() and read_json(settings).get("train_rows") == task.data.train_rows:
            return before
    return above / directory_name(task.name) / name


def checksum_of(path: Path | None) -> str | None:
    """The checksum of a file, or of all files in a folder with their names; of a data set on the Hub its name."""
    if path is None:
        return None
    if on_hub(path):
        return str(path)
    if not path.is_dir():
        return digest(path)[:16]
    inside = sorted((each.relative_to(path).as_posix(), digest(each)) for each in path.rglob("*") if each.is_file())
    return hashlib.sha256("".join(f"{name} {checksum}\n" for name, checksum in inside).encode()).hexdigest()[:16]


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
    def decisive(self) -> dict[str, Any]:
        """What decides the outcome, whichever recipe of the plan it is of: with equal values one training does."""
        return self.settings

    @property
    def finished(self) -> bool:
        """Whether the training has finished, so that it is not run again."""
        if not (self.directory / self.marker).is_file() and self.directory.is_dir():
            checksums.require_present(self.directory / self.marker)  # or finished weights would be trained again
        return (self.directory / self.marker).is_file() and self._settings_file.is_file()

    @property
    def failure(self) -> str | None:
        """The error message of a divergence, which the same settings would most likely repeat; None: none happened."""
        return divergence(self.directory)

    def fail(self, message: str) -> None:
        """Write failure.json, so that the same plan does not try this training again."""
        note_divergence(self.directory, message)

    @property
    def _settings_file(self) -> Path:
        return settings_beside(self.directory)

    def check(self, key: str = "") -> None:
        """Refuse a directory that was made with other settings, and forget settings that are `outdated`.

        Args:
            key: the only setting that is compared, with the settings below it; left out: all settings.

        Raises:
            UserError: see `require_unchanged`.
        """
        if self.outdated(key):
            self.discard()
            checksums.forget(self._settings_file.parent, [self._settings_file.name])
            self._settings_file.unlink()
        else:
            self.require_unchanged(key)

    def outdated(self, key: str = "") -> bool:
        """Whether the settings here are those of a deleted directory, or of a diverged training that has changed."""
        if not self._settings_file.is_file():
            return False
        return not self.directory.exists() or (
            self.failure is not None and any(differences(*self._before_and_now(key)))
        )

    def require_unchanged(self, key: str = "") -> None:
        """Refuse a directory that was made with other settings, and write nothing.

        Args:
            key: see `check`.

        Raises:
            UserError: the directory was made with other settings, of which the message names the first that differs;
                or no comparison has made it.
        """
        if self._settings_file.is_file():
            if not self.outdated(key):
                before, now = map(_with_contents, self._before_and_now(key))
                advice = f"restore the plan and its files, {ELSEWHERE}, or delete that directory"
                unnamed = [*DIGESTS, *(name for name in now if OF_FILE in name), *_of_teachers(now)]
                require_same(self.directory, before, now, advice, unnamed)
        elif self.directory.exists():
            checksums.require_present(self._settings_file)
            raise UserError(f"{self.directory}: not made by a comparison; move it away or choose another --out")

    def _before_and_now(self, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings with which the directory was made, and those of now; with a key it alone."""
        before, now = _completed(read_json(self._settings_file), self.settings), self.settings
        if SCRATCH in now.get("pretraining", {}):
            before["pretraining"].setdefault(SCRATCH, now["pretraining"][SCRATCH])  # older versions did not keep it
        for then, here in ((before, now), (before.get("pretraining", {}), now.get("pretraining", {}))):
            if TEACHER in here:
                then.setdefault(TEACHER, here[TEACHER])  # likewise
        return ({key: before.get(key)}, {key: now.get(key)}) if key else (before, now)

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


def with_teachers(digests: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the runs are which a recipe learns from, by the digests of their weights; none without them."""
    return {TEACHER: dict(digests)} if digests else {}


def _of_teachers(settings: dict[str, Any]) -> list[str]:
    """The dotted keys of the digests of teachers."""
    of = {"": settings, "pretraining.": settings.get("pretraining") or {}}
    return [f"{above}{TEACHER}.{name}" for above, values in of.items() for name in values.get(TEACHER, {})]


def _with_contents(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the digest of each file under a name that says in an error what it is of."""
    files = settings.get("files") or {}
    return {
        **{key: of for key, of in settings.items() if key != "files"},
        **{OF_FILE + name: files[name] for name in files},
    }


def _completed(settings: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Settings of an older version, with defaults for the keys that recipes, searches and tasks have gained since.

    Older versions wrote the default epochs and steps of fine-tuning out, which is how a plan may give them, too: they
    are taken for the defaults where the settings of now leave both to Bakeoff.
    """
    completed = dict(settings)
    for key, config in (("recipe", Recipe), ("model", ModelConfig), ("search", SearchPlan)):
        if completed.get(key) is not None:
            completed[key] = with_defaults(completed[key], config)
    if "pretraining" in completed:
        completed["pretraining"] = _completed(completed["pretraining"], {})
    if "finetune" in completed:
        completed["finetune"] = with_defaults(completed["finetune"], FinetuneConfig)
        if LEFT_OUT.items() <= now.get("finetune", {}).items() and WRITTEN_OUT.items() <= completed["finetune"].items():
            completed["finetune"] |= LEFT_OUT
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
