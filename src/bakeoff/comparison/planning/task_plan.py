"""A task of a plan: its name, its data and the settings of its fine-tunings."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    Field,
    PrivateAttr,
    SerializationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bakeoff.comparison.planning.recipe_plan import Name
from bakeoff.config import Config
from bakeoff.errors import UserError, at_home
from bakeoff.reading.hub import on_hub
from bakeoff.tasks.datasets.dataset import describes_dataset
from bakeoff.tasks.datasets.named import named_task
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.measures.registry import MEASURES
from bakeoff.tasks.registry import DEFAULT_KIND, TASKS
from bakeoff.tasks.task_config import TaskConfig

ALL = "all"
"""What stands in a plan for all rows of train."""


class RowsPoint(NamedTuple):
    """A point of a curve over rows of train."""

    curve: str
    """The name of the plan's task, which has several numbers of rows."""
    rows: int | None
    """The number of rows; None: all of train."""


class TaskPlan(Config):
    """A task on which every recipe is fine-tuned; a plan has the keys of its kind beside `name` and `finetune`."""

    name: Name
    """The task's name in the report."""
    finetune: FinetuneConfig = FinetuneConfig()
    """Settings of the fine-tuning, the same for every recipe, pre-trained or not."""
    data: Annotated[TaskConfig, TASKS]
    """The task itself: its kind, files and columns."""
    train_rows: list[int | Literal["all"]] = Field(default=[])
    """Several numbers of rows of train to learn from, `all` among them or not, for a curve over labels; a single number
    stands among the keys of the task's kind. Each number is a task of its own in the results."""

    _point: RowsPoint | None = PrivateAttr(default=None)

    @property
    def point(self) -> RowsPoint | None:
        """The point of a curve over rows that the task is; None: it is on no curve."""
        return self._point

    @property
    def in_points(self) -> bool:
        """Whether the metric is in percent or times 100, and differences in points; the data choose one if none is."""
        metric = getattr(self.data, "metric", None)  # the kinds of plugins may have no such key
        return metric is None or self.data.described(metric).unit != ""

    @model_validator(mode="before")
    @classmethod
    def _of_its_kind(cls, values: Any) -> Any:
        """Move the keys of the task's kind into `data`; `name` and `finetune` stay where they are."""
        if not isinstance(values, Mapping) or isinstance(values.get("data"), TaskConfig):
            return values
        kind = values.get("kind", DEFAULT_KIND)
        data = {key: value for key, value in values.items() if key != "finetune"}
        if isinstance(kind, str) and kind in TASKS:
            known = [*TASKS[kind].model_fields, "finetune"]
            for key in data:
                if key not in known:
                    text = "a task of the kind " + kind + " has no key '{key}'"
                    raise PydanticCustomError("unknown_key", text, {"key": str(key), "known": known})
        if isinstance(data.get("metric"), list):
            raise ValueError(
                "metric: give one, by which epochs are chosen and recipes ranked; results.json has all of them, and a "
                "task that is given twice, with a name and a metric each, has verdicts on both"
            )
        parted = {key: values[key] for key in ("name", "finetune") if key in values}
        if (rows := data.get("train_rows")) == ALL or isinstance(rows, list):
            data |= {"train_rows": None}
            parted |= {"train_rows": rows} if isinstance(rows, list) else {}
        return {**parted, "data": {**data, "kind": kind}}

    @field_validator("train_rows", mode="before")
    @classmethod
    def _numbers_of_rows(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("a number of rows at least is wanted, or none of this key")
        for rows in value:
            if rows != ALL and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
                raise ValueError(f"a number of rows is wanted, or `all`, not {rows!r}")
            if value.count(rows) > 1:
                raise ValueError(f"{rows} stands there twice")
        return sorted(value, key=lambda rows: math.inf if rows == ALL else rows)

    def expanded(self) -> "list[TaskPlan]":
        """The task itself, or one for each of its numbers of rows."""
        if not self.train_rows:
            return [self]
        items = []
        for rows in self.train_rows:
            name = f"{self.name}, {rows} rows"
            point = RowsPoint(self.name, rows if isinstance(rows, int) else None)
            data = self.data.model_copy(update={"name": name, "train_rows": point.rows})
            item = self.model_copy(update={"name": name, "data": data, "train_rows": []})
            item._point = point
            items.append(item)
        return items

    @model_serializer
    def _as_in_the_plan(self, info: SerializationInfo) -> dict[str, Any]:
        return {**self.data.model_dump(mode=info.mode), "finetune": self.finetune.model_dump(mode=info.mode)}

    @property
    def files(self) -> dict[str, Path | None]:
        """The files of the task, by key; None: the split is held out of train."""
        values = {name: getattr(self.data, name) for name in type(self.data).model_fields}
        files = {name: values[name] for name in ("train", "dev", "test")}
        return files | {name: value for name, value in values.items() if isinstance(value, Path)}


def with_data_sets(plan: Any, path: Path) -> Any:
    """The values of a plan, with the files, columns and metric of each published data set that a task names.

    Raises:
        UserError: there is no such data set, or its files are not in the folder.
    """
    if not isinstance(plan, Mapping) or not isinstance(plan.get("tasks"), list):
        return plan
    return {**plan, "tasks": [_with_data_set(task, f"{path}: tasks.{i}", path) for i, task in enumerate(plan["tasks"])]}


def _with_data_set(task: Any, where: str, path: Path) -> Any:
    if not isinstance(task, Mapping) or "dataset" not in task:
        return task
    several = {key: value for key, value in task.items() if key == "train_rows" and not isinstance(value, int)}
    apart = ("dataset", "data", "finetune", *several)
    settings = {key: value for key, value in task.items() if key not in apart}
    for key in ("dataset", "data"):
        if not isinstance(task.get(key, ""), str):
            raise UserError(f"{where}.{key}: a name is wanted, not {task[key]!r}")
    data = task.get("data")
    if data is not None and not on_hub(data):
        data = (path.parent / at_home(data)).resolve()
    for key in ("train", "dev", "test"):
        if isinstance(settings.get(key), str) and not on_hub(Path(settings[key])):
            settings[key] = str((path.parent / at_home(settings[key])).resolve())
    name = task["dataset"]
    if describes_dataset(name):
        name = str((path.parent / at_home(name)).resolve())
    try:
        known = named_task(name, data, settings)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return {**known, **several, **({"finetune": task["finetune"]} if "finetune" in task else {})}


def is_measure(values: Any) -> bool:
    """Whether an entry of `tasks` is what recipes are measured on without fine-tuning."""
    kind = values.get("kind") if isinstance(values, Mapping) else None
    return isinstance(kind, str) and kind in MEASURES


def places(values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Where the tasks of a plan stand in it, and where its measures, some of which stand among the tasks."""
    tasks = {f"tasks.{i}": is_measure(each) for i, each in enumerate(values.get("tasks") or [])}
    measures = [f"measures.{i}" for i in range(len(values.get("measures") or []))]
    return [key for key in tasks if not tasks[key]], [*measures, *(key for key in tasks if tasks[key])]
