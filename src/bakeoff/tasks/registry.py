"""The registry of kinds of tasks."""

from typing import Any

from bakeoff.errors import UserError
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.task_config import TASKS, TaskConfig

for _kind in (
    ClassificationConfig,
    MultilabelConfig,
    RegressionConfig,
    TaggingConfig,
    ChoiceConfig,
    QuestionAnsweringConfig,
    SequenceToSequenceConfig,
):
    TASKS.register(_kind)

__all__ = ["DEFAULT_KIND", "TASKS", "parse_task", "setting_of_task"]

DEFAULT_KIND = "classification"
"""The kind of a task whose kind is not given."""


def setting_of_task(key: str, kind: str) -> bool:
    """Whether a key is a setting of tasks of a kind."""
    return kind in TASKS and key in TASKS[kind].model_fields


def parse_task(values: dict[str, Any], where: str) -> TaskConfig:
    """The config of a task, read from a file or the command line.

    Raises:
        UserError: there is no such kind, or a mistake in its values.
    """
    kind = values.get("kind", DEFAULT_KIND)
    if not isinstance(kind, str) or kind not in TASKS:
        raise UserError(f"{where}: kind: there is no kind of task {kind!r}; there are {', '.join(TASKS)}")
    return TASKS[kind].parse(values, where)
