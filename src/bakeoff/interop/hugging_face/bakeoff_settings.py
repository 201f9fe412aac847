"""Settings of a fine-tuned run that transformers has no key for, under a key of Bakeoff's own in config.json.

transformers keeps unknown keys, even when it saves a model that it has trained further.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.resolution import require_settings_of
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import SHORTEST
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig

KEY = "bakeoff"
"""The key in config.json."""
OF_FILES = frozenset(
    {"train", "dev", "test", "train_rows", "dev_share", "test_share", "split_seed", "cluster_column", "remark"}
    | {"probabilities_column"},
)
"""Settings of a task that name its training data, which are files of the model's author; they are left out."""
OF_ROWS = ("length", "truncate")
"""Settings of fine-tuning that decide how texts become rows, and that neither the head nor the tokenizer has."""
NOT_KNOWN = "not-known"
"""The value in place of a training file that is not known."""


class BakeoffSettings(NamedTuple):
    """Bakeoff's settings in the config.json of an exported run."""

    task: dict[str, Any]
    """The task's settings."""
    labels: Any
    """Facts that the task learned about its labels, as in labels.json."""
    rows: dict[str, Any]
    """The settings of OF_ROWS."""
    where: str
    """The path and key, for errors."""

    @property
    def pairs(self) -> bool:
        """Whether the task reads pairs of texts, where its kind may read either."""
        return self.task.get("pair_column") is not None

    @property
    def generates(self) -> bool:
        """Whether the task's answers are generated texts."""
        return self.config("").head == "writing"

    def fits(self, ending: str, problem: str | None, names: Sequence[str]) -> bool:
        """Whether the settings belong to a head of this class, `problem_type` and names of outputs.

        They do not if somebody has trained another head since the export.
        """
        config = self.config("")
        head = config.exported
        if head is None or head.ending != ending or head.problem_type not in (None, problem):
            return False
        classes = self.restored(config).classes
        return not classes or classes == list(names)

    def config(self, file: str, pair_column: str | None = None) -> TaskConfig:
        """The task's config, with a path in place of its unknown training file.

        Args:
            file: the path in place of the training file.
            pair_column: the column of second texts for settings that name none; None: add none.

        Raises:
            UserError: a setting is unknown or invalid.
        """
        values = {**self.task, "train": file}
        if pair_column is not None and not self.pairs:
            values["pair_column"] = pair_column
        return parse_task(values, f"{self.where}: task")

    def restored(self, config: TaskConfig) -> Task:
        """The task with its labels restored.

        Raises:
            UserError: the labels are invalid for such a task.
        """
        return config.restore(self.labels, f"{self.where}: labels")

    def finetune(self, config: TaskConfig, recipe: Recipe) -> dict[str, Any]:
        """The settings of OF_ROWS, checked against the task and the model.

        Raises:
            UserError: a setting is invalid or does not belong to the task, or the model has no room for rows of this
                length.
        """
        said = FinetuneConfig.parse(self.rows, f"{self.where}: rows")
        longest = recipe.model.longest_input
        if said.length is None or said.length < SHORTEST or (longest is not None and said.length > longest):
            room = f"{SHORTEST} tokens or more" if longest is None else f"{SHORTEST} to {longest} tokens"
            raise UserError(f"{self.where}: rows.length: {room} are wanted, not {self.rows.get('length')!r:.50}")
        try:
            require_settings_of(config, said)
        except UserError as error:
            raise UserError(f"{self.where}: rows: {error}") from None
        return {name: getattr(said, name) for name in OF_ROWS}


def written(run: FinetunedRun) -> dict[str, Any]:
    """The key of config.json with the settings of a run."""
    task = {name: value for name, value in run.task.model_dump(mode="json").items() if name not in OF_FILES}
    rows = {name: getattr(run.config, name) for name in OF_ROWS}
    return {KEY: {"task": task, "labels": run.learned.labels_on_scale, "rows": rows}}


def read(config: ConfigReader) -> BakeoffSettings | None:
    """The settings in a config; None: there are none, as in models that Bakeoff did not export.

    Raises:
        UserError: the value has not the form that `written` gives it.
    """
    said = config.values.get(KEY)
    if said is None:
        return None
    where = f"{config.where}: {KEY}"
    if not isinstance(said, Mapping) or not {"task", "labels", "rows"} <= said.keys():
        raise UserError(f"{where}: task, labels and rows are wanted, not {said!r:.50}; take the key out to do without")
    for name in ("task", "rows"):
        if not isinstance(said[name], Mapping):
            raise UserError(f"{where}: {name}: settings are wanted, not {said[name]!r:.50}")
    for names, known in ((said["task"].keys() & OF_FILES, "task"), (said["rows"].keys() - set(OF_ROWS), "rows")):
        if names:
            raise UserError(f"{where}: {known}: {min(names)!r:.50} does not belong there")
    return BakeoffSettings(dict(said["task"]), said["labels"], dict(said["rows"]), where)
