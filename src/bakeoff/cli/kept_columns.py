"""`predict --keep-columns`: the columns of the file beside the answers to its rows."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.predict import Predicted
    from bakeoff.tasks.reading.tables import TableForm
    from bakeoff.tasks.task import Task
    from bakeoff.tasks.task_config import TaskConfig

ANSWERS = "predicted_"
"""The beginning of an answer's names that columns of the file have already."""


def require_columns(path: Path | None, config: "TaskConfig", column: str | None) -> Path:
    """The file of texts, after a check that it has a row with columns for each answer and can be read twice.

    Args:
        path: the file; None: texts come from elsewhere.
        config: the config by which the file is read.
        column: the column of the texts that the user names.

    Raises:
        UserError: the texts come from elsewhere, or from a file without such rows.
    """
    if path is not None and path.is_file() and config.has_rows(path, column):
        return path
    given = "the texts are in no file" if path is None else f"{path} has no columns with a row for each answer"
    raise UserError(f"--keep-columns: {given}; give --texts a .jsonl, .csv, .tsv, .parquet or .arrow")


def with_columns(
    path: Path, form: "TableForm", task: "Task", parts: Iterable[Iterable["Predicted"]]
) -> Iterator[list[dict[str, Any]]]:
    """The values of each row of a file, and the answer to it.

    An answer's name that is a column's, too, begins with `ANSWERS`.

    Args:
        path: the file that the answers are for, which is read again beside them.
        form: the form in which the file is read.
        task: the fine-tuned run's task, which gives answers their names.
        parts: the answers, in the order of the file's rows; rows that were left out have none.
    """
    rows = _rows(path, form)
    for part in parts:
        found = []
        for each in part:
            line = each.example.line  # 0 where no row can be left out
            row = next(values for number, values in rows if line in (0, number))
            answer = task.answered(each.example, each.answer)
            found.append({**row, **{f"{ANSWERS}{key}" if key in row else key: answer[key] for key in answer}})
        yield found


def _rows(path: Path, form: "TableForm") -> Iterator[tuple[int, Mapping[str, Any]]]:
    from bakeoff.reading.records import RecordStyle
    from bakeoff.reading.rows import whole_rows

    broken = (lambda line, reason: None) if form.broken_rows == "skip" else None
    style = RecordStyle(form.header, form.separator, form.extra_columns, broken)
    for number, values in whole_rows(path, form.errors, form.encoding, style):
        yield number, {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """The value, as a text if it is of a type that JSON has not, such as a date."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
