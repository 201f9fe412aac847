"""`--keep-columns`: the columns of a file of texts beside the answers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bakeoff.cli.shared.output_files import plain
from bakeoff.cli.shared.parquet_file import require_columns
from bakeoff.errors import UserError
from bakeoff.reading.table_reader import whole_characters

if TYPE_CHECKING:
    from bakeoff.tasks.predict import Predicted
    from bakeoff.tasks.reading.tables import TableForm
    from bakeoff.tasks.task_config import TaskConfig

PREDICTED = "predicted_"
"""The beginning of a prediction's names that columns of the file have already."""


class KeptColumns(NamedTuple):
    """The file whose columns stand beside the answers."""

    path: Path
    """The file, which is read again beside the answers."""
    form: "TableForm"
    """The form in which it is read."""
    names: Collection[str]
    """The names of all columns, in their order; rows of a .jsonl may have any."""
    always: bool
    """Every answer has all columns, as the rows of a .csv or .tsv need it."""

    @classmethod
    def of(
        cls, path: Path | None, form: "TableForm", column: str | None, config: "TaskConfig", out: Path | None
    ) -> "KeptColumns":
        """The columns of a file that has a row for each answer and can be read twice.

        Args:
            path: the file; None: texts come from elsewhere.
            form: the form in which it is read.
            column: the column of the texts that the user names.
            config: the config by which the texts are read.
            out: the file of answers, if there is one.

        Raises:
            UserError: the texts come from elsewhere, or from a file without such rows; or `out` cannot hold them.
        """
        if path is None or not path.is_file() or not config.has_rows(path, column):
            where = (
                "the texts are in no file" if path is None else f"{path} has no columns with a row for each prediction"
            )
            raise UserError(f"--keep-columns: {where}; give --texts a .jsonl, .csv, .tsv, .parquet or .arrow")
        if out is not None and out.suffix == ".parquet":
            require_columns(values for _, values in _rows(path, form))
        return cls(path, form, _names(path, form), out is not None and out.suffix in (".csv", ".tsv"))

    def beside(
        self, parts: Iterable[Iterable["Predicted"]], record: Callable[["Predicted"], Mapping[str, Any]]
    ) -> Iterator[list[dict[str, Any]]]:
        """The values of each row, and the prediction for it.

        A prediction's name that is a column's in any row begins with `PREDICTED`, as often as it takes.

        Args:
            parts: the predictions, in the order of the file's rows, for those that were not left out.
            record: a function that gives a prediction its names.
        """
        rows, empty = _rows(self.path, self.form), dict.fromkeys(self.names if self.always else ())
        for part in parts:
            records = []
            for each in part:
                line = each.example.line  # 0 where no row can be left out
                row = next(values for number, values in rows if line in (0, number))
                records.append({**empty, **row, **{self._free(key): value for key, value in record(each).items()}})
            yield records

    def _free(self, name: str) -> str:
        """The name of a prediction beside columns."""
        return self._free(f"{PREDICTED}{name}") if name in self.names else name


def _names(path: Path, form: "TableForm") -> Collection[str]:
    from bakeoff.reading.files import kind_of

    most = None if kind_of(path) == ".jsonl" else 1
    return dict.fromkeys(name for _, values in islice(_raw_rows(path, form), most) for name in values)


def _rows(path: Path, form: "TableForm") -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, values in _raw_rows(path, form):
        where = f"{path}:{number}"
        whole = {whole_characters(name, f"{where}: a name", form.errors): each for name, each in values.items()}
        yield number, {name: plain(each, f"{where}: '{name}'", form.errors) for name, each in whole.items()}


def _raw_rows(path: Path, form: "TableForm") -> Iterator[tuple[int, Mapping[str, Any]]]:
    from bakeoff.reading.records import RecordStyle
    from bakeoff.reading.tables import open_table

    broken = (lambda line, reason: None) if form.broken_rows == "skip" else None
    style = RecordStyle(form.header, form.separator, form.extra_columns, form.adjustable, broken)
    return open_table(path, form.errors, form.encoding, style).whole()
