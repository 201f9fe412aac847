"""What a fine-tuned run has learnt or decided that no key of transformers says: a key of our own in config.json.

transformers keeps keys that it does not know, also where it saves a model that it has trained further.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.regression import Regression
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import SHORTEST
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig

KEY = "bakeoff"
"""The key of config.json."""
OF_FILES = frozenset(
    {"train", "dev", "test", "train_rows", "dev_share", "test_share", "split_seed", "remark"},
)
"""Settings of a task that say which rows it was learnt from; they name files of whoever has written the model."""
OF_ROWS = ("length", "truncate")
"""Settings of fine-tuning that say how texts become rows, and that neither the head nor the tokenizer tells."""
NOT_KNOWN = "not-known"
"""In the place of the file that a model was trained on."""
UNSCALED = {"mean": 0.0, "deviation": 1.0}
"""Of a number that stands on the scale of its labels already."""


class OwnSettings(NamedTuple):
    """What a config says of the run that was exported."""

    task: dict[str, Any]
    """The task's settings."""
    labels: Any
    """What was learnt of its labels, as labels.json has it."""
    rows: dict[str, Any]
    """How texts become rows."""
    where: str
    """Named in errors."""

    @property
    def pairs(self) -> bool:
        """It reads pairs of texts, where its kind may read single ones."""
        return self.task.get("pair_column") is not None

    def fits(self, kind: str, names: Sequence[str]) -> bool:
        """Whether a head of that kind with classes of these names is the one that was exported.

        It is not where somebody has trained another one since.
        """
        if self.task.get("kind") != kind:
            return False
        return not names or list(self.restored(self.config("")).classes) == list(names)

    def config(self, file: str, pair_column: str | None = None) -> TaskConfig:
        """The task, whose training was on a file that is not known.

        Args:
            file: in the place of that file.
            pair_column: the column with second texts, where it is to have one and says none.

        Raises:
            UserError: it says something that no task has.
        """
        values = {**self.task, "train": file}
        if pair_column is not None and not self.pairs:
            values["pair_column"] = pair_column
        return parse_task(values, f"{self.where}: task")

    def restored(self, config: TaskConfig) -> Task:
        """The task with what was learnt of its labels.

        Raises:
            UserError: that is nothing such a task has.
        """
        labels = UNSCALED if config.kind == "regression" else self.labels
        return config.restore(labels, f"{self.where}: labels")

    def finetune(self, config: TaskConfig, recipe: Recipe) -> dict[str, Any]:
        """Settings of fine-tuning that say how texts become rows.

        Raises:
            UserError: they are none, or the model has no room for such rows.
        """
        said = FinetuneConfig.parse(self.rows, f"{self.where}: rows")
        longest = recipe.model.longest_input
        if said.length is None or said.length < SHORTEST or (longest is not None and said.length > longest):
            room = f"{SHORTEST} tokens or more" if longest is None else f"{SHORTEST} to {longest} tokens"
            raise UserError(f"{self.where}: rows.length: {room} are wanted, not {self.rows.get('length')!r:.50}")
        if said.truncate == "windows" and not config.reads_windows:
            raise UserError(f"{self.where}: rows.truncate: a task of the kind {config.kind} is not read in windows")
        return {name: getattr(said, name) for name in OF_ROWS}


def written(run: FinetunedRun) -> dict[str, Any]:
    """The key, and what it says of a run."""
    task = {name: value for name, value in run.task.model_dump(mode="json").items() if name not in OF_FILES}
    labels = UNSCALED if isinstance(run.learned, Regression) else run.learned.labels
    rows = {name: getattr(run.config, name) for name in OF_ROWS}
    return {KEY: {"task": task, "labels": labels, "rows": rows}}


def read(config: ConfigReader) -> OwnSettings | None:
    """What a config says; None: nothing, as that of a model that was made elsewhere.

    Raises:
        UserError: it is not what `written` gives.
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
    return OwnSettings(dict(said["task"]), said["labels"], dict(said["rows"]), where)
