"""Files that are read in another way than the files on which a run was fine-tuned."""

from collections.abc import Mapping
from typing import Any, TypeVar

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.tasks.task_config import TaskConfig

SomeTask = TypeVar("SomeTask", bound=TaskConfig)


def reading_otherwise(task: SomeTask, settings: Mapping[str, Any]) -> SomeTask:
    """The task, set to read a file with other columns, or of another form, than the files of fine-tuning.

    Args:
        task: the config of fine-tuning.
        settings: columns and other settings of how a file is read, by their keys.

    Raises:
        UserError: there is no such key, or fine-tuning has decided it; a mistake in a value; or a model that has
            learned
            single texts would read pairs, or the other way round.
    """
    known = type(task).model_fields
    able = [key for key in known if key in task.reading or key.endswith("_column")]
    for key in settings:
        if key not in able:
            reason = "was decided in fine-tuning" if key in known else f"is nothing that a task of {task.kind} has"
            raise UserError(f"{key}: {reason}; how a file is read is said by {listed(able, 'and')}")
    changed = task.parse({**task.model_dump(), **settings}, "settings of the file")
    if changed.input_sides != task.input_sides:
        learned = "single texts" if task.input_sides == 1 else "pairs of texts"
        raise UserError(f"pair_column: the run has learned from {learned}, and reads nothing else")
    return changed
