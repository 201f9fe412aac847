"""Which rows of a task belong together: questions on one article, sentences of one document, pairs of one kind."""

from collections.abc import Sequence
from pathlib import Path

from bakeoff.errors import UserError
from bakeoff.reading.hub import on_hub
from bakeoff.tasks.examples import Example, LeftOut
from bakeoff.tasks.reading.labels import label_text
from bakeoff.tasks.reading.tables import table_rows
from bakeoff.tasks.task_config import TaskConfig

Key = tuple[str, ...]
"""What the rows of a cluster have in common."""


def named_clusters(config: TaskConfig, path: Path) -> dict[int, str]:
    """The cluster that `cluster_column` names in each row of a file, by line; empty where the task has no such column.

    Raises:
        UserError: the file has no such column, or none at all.
    """
    if config.cluster_column is None:
        return {}
    labels = getattr(config, "label_column", None)
    if config.cluster_column in (labels if isinstance(labels, list) else [labels]):
        raise UserError(
            f"{path}: cluster_column: '{config.cluster_column}' is the label, and rows of one label are no cluster; "
            "name what they come from, such as the article"
        )
    if config.form.layout == "table" and not on_hub(path) and not config.has_rows(path):
        raise UserError(
            f"{path}: cluster_column: such a file has no column '{config.cluster_column}'; leave it out, and articles "
            "and documents that the file marks are clusters by themselves"
        )
    named = {}
    advice = "; name another with cluster_column, or leave it out"  # those of the texts and labels are there
    for row in table_rows(path, [config.cluster_column], config.form, advice):
        if not isinstance(row, LeftOut):
            line, (value,) = row
            named[line] = "" if value is None else label_text(value)
    return named


def keys_together(examples: Sequence[Example], named: dict[int, str]) -> list[Key]:
    """The key of each example that stays with those of an equal key where a split is held out."""
    return [(named[each.line],) if named.get(each.line) else each.together for each in examples]


def cluster_numbers(config: TaskConfig, path: Path, examples: Sequence[Example]) -> list[int]:
    """The number of the cluster of each example of a file, from 0 on; empty where each example is one of its own.

    Raises:
        UserError: as of `named_clusters`.
    """
    named = named_clusters(config, path)
    keys = [(named[each.line],) if named.get(each.line) else each.cluster for each in examples]
    if not named and len(set(keys)) == 1:
        keys = [each.together for each in examples]  # a single mark of a document marks none
    numbers: dict[Key, int] = {}
    found = [numbers.setdefault(key, len(numbers)) for key in keys]
    return [] if len(numbers) == len(examples) else found
