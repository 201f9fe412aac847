"""The files and columns of a task, from the options that `finetune`, `check` and `evaluate` have in common."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bakeoff.cli.shared.completing import complete_dataset
from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.options import Errors
from bakeoff.display.wording import listed
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.task_config import TaskConfig

NamedColumns = Mapping[str, Any]
"""The columns that the options name, by the keys of a task's config; None for an option that was not given."""


class Files(NamedTuple):
    """The values of the options for a task."""

    dataset: str | None
    """The name of a published data set; None: the files are named by other options."""
    data: str | None
    """The folder with the data set's files."""
    given: dict[str, Any]
    """The values of the other options, by the keys of a task's config; None for an option that was not given."""

    @property
    def named(self) -> bool:
        """Whether any option for labelled data was given."""
        said = [value for key, value in self.given.items() if key != "errors"]
        return any(each is not None for each in (self.dataset, self.data, *said))


def columns_of(
    text_column: Annotated[str | None, typer.Option(help="Column with the text, words, context or question.")] = None,
    pair_column: Annotated[
        str | None, typer.Option(help="Column with the second text of a pair, or with the context of a question.")
    ] = None,
    label_column: Annotated[
        list[str],
        typer.Option(help="Column with the label. For multilabel: repeat it, once for the column of each label."),
    ] = [],  # noqa: B006
    spans_column: Annotated[
        str | None, typer.Option(help="For tagging: field with spans of a raw text, instead of a tag for each word.")
    ] = None,
    start_column: Annotated[
        str | None,
        typer.Option(
            help="For question answering: column with the position of the character at which the answer begins."
        ),
    ] = None,
    choices: Annotated[
        list[str],
        typer.Option(
            help="For choice: column with the list of choices. Or repeat it, once for the column of each choice."
        ),
    ] = [],  # noqa: B006
) -> NamedColumns:
    """The columns of a file, from the options that name them."""
    return {
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": _one_or_several(label_column),
        "spans_column": spans_column,
        "start_column": start_column,
        "choices": _one_or_several(choices),
    }


@taking(columns=columns_of)
def files_of(
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A published data set whose files and columns are known, or a .yaml file that says them "
            "(docs/datasets.md).",
            autocompletion=complete_dataset,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FOLDER|hub:NAME", help="With --dataset: folder with its files as published."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=(
                "Kind of task: classification (default), multilabel, regression, tagging, choice, question-answering"
                " or sequence-to-sequence (docs/tasks.md), or one of a --plugin."
            ),
        ),
    ] = None,
    train: Annotated[Path | None, typer.Option(help="Labelled file to train on: .csv, .tsv or .jsonl.")] = None,
    dev: Annotated[
        Path | None,
        typer.Option(help="Labelled file that decides when to stop and what to keep. Default: a part of --train."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Labelled file that the final results are measured on. Default: a part of --train."),
    ] = None,
    *,
    columns: NamedColumns,
    metric: Annotated[
        str | None,
        typer.Option(help="Metric that decisions on dev are made by. Default: the first metric of the task."),
    ] = None,
    train_rows: Annotated[int | None, typer.Option(help="Train on so many rows, of each class its share.")] = None,
    errors: Errors = "strict",
) -> Files:
    """A task's files and columns, from the options for them."""
    values = {"kind": task, "train": train, "dev": dev, "test": test, **columns}
    return Files(dataset, data, {**values, "metric": metric, "train_rows": train_rows, "errors": errors})


Options = Annotated[
    list[str],
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="A setting of the task or of its training, e.g. header=false or epochs=5 (docs/tasks.md).",
    ),
]


def _one_or_several(columns: Sequence[str]) -> Any:
    """The single named column, or the list of several; None where no column was named."""
    return columns[0] if len(columns) == 1 else list(columns) or None


def task_of(files: Files, settings: dict[str, Any], where: str) -> "TaskConfig":
    """The config of a task; the task's settings are removed from `settings`.

    Raises:
        UserError: there is no training file, no such data set or kind of task, or a mistake in the values.
    """
    from bakeoff.tasks.datasets.dataset import load_dataset
    from bakeoff.tasks.datasets.named import named_task
    from bakeoff.tasks.registry import DEFAULT_KIND, TASKS, parse_task

    options = {key: value for key, value in files.given.items() if value is not None}
    if "kind" in options:
        named = options["kind"]
        options["kind"] = named if named in TASKS else named.replace("-", "_")
    if files.dataset is None:
        if files.data is not None:
            raise UserError("--data belongs to --dataset NAME; labelled files are named by --train, --dev and --test")
        if "train" not in options:
            raise UserError("give --train FILE, or --dataset NAME --data FOLDER")
        values = {"kind": DEFAULT_KIND, "name": Path(options["train"]).name.partition(".")[0], **options}
        values |= _settings_of(values["kind"], settings)
        _require(values, files.given)
        return parse_task(values, where)
    kind = options.get("kind") or load_dataset(files.dataset).kind
    options |= _settings_of(kind, settings)
    values = named_task(files.dataset, files.data, options)
    return parse_task(values, f"{where}: {files.dataset}")


def _require(values: dict[str, Any], options: Collection[str]) -> None:
    """Refuse a task without the columns that its kind needs; the error names the options that give them."""
    from bakeoff.tasks.registry import TASKS

    kind = values["kind"]
    fields = TASKS[kind].model_fields if kind in TASKS else {}
    needed = [name for name, field in fields.items() if field.is_required() and name in options and name not in values]
    if needed:
        missing = listed([f"--{name.replace('_', '-')} NAME" for name in needed])
        raise UserError(f"{kind.replace('_', '-')}: give {missing}: columns of {values['train']}")


def _settings_of(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    from bakeoff.tasks.registry import setting_of_task

    return {key: settings.pop(key) for key in list(settings) if setting_of_task(key, kind)}
