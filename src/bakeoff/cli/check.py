"""`bakeoff check`: a directory for damage, or labelled data for mistakes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.check_task import check_task
from bakeoff.cli.output import Errors, Json, print_json
from bakeoff.cli.task_values import (
    Choices,
    Data,
    Dataset,
    Files,
    LabelColumn,
    PairColumn,
    SpansColumn,
    StartColumn,
    TrainRows,
    one_or_several,
)
from bakeoff.display.terminal import show
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.checking import FileGroup


def check(
    directory: Annotated[
        str | None,
        typer.Argument(
            metavar="DIRECTORY|RUN|RECIPE",
            help="A corpus, a run, a fine-tuned run or a comparison; of labelled data the run or recipe to be trained.",
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Of labelled data: its kind, as of finetune.")] = None,
    train: Annotated[Path | None, typer.Option(help="Labelled file to learn from, as of finetune.")] = None,
    dev: Annotated[Path | None, typer.Option(help="File that decides when to stop.")] = None,
    test: Annotated[Path | None, typer.Option(help="File that the results come from.")] = None,
    dataset: Dataset = None,
    data: Data = None,
    text_column: Annotated[str | None, typer.Option(help="Column with the text, the words or the context.")] = None,
    label_column: LabelColumn = [],  # noqa: B006
    pair_column: PairColumn = None,
    spans_column: SpansColumn = None,
    start_column: StartColumn = None,
    choices: Choices = [],  # noqa: B006
    train_rows: TrainRows = None,
    options: Annotated[
        list[str], typer.Option("--option", metavar="KEY=VALUE", help="A setting of the task (docs/tasks.md).")
    ] = [],  # noqa: B006
    corpus: Annotated[Path | None, typer.Option(help="The corpus whose tokenizer counts.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json that counts, instead of --corpus.")] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Tokens to which rows are to be cut. Default: the run's.")
    ] = None,
    errors: Errors = "strict",
    json: Json = False,
) -> None:
    """Read every byte of a directory and compare it with its checksums; or look at labelled data before a training.

    Of labelled data: counts, labels, lengths, what several parts share, likely mistakes, and what would be refused.

    Example: bakeoff check runs/bert

    Example: bakeoff check runs/bert --train train.tsv --dev dev.tsv --text-column sentence --label-column label

    Example: bakeoff check --dataset sst2 --data glue/SST-2 --corpus corpora/mine --length 64
    """
    given = {
        "kind": task,
        "train": train,
        "dev": dev,
        "test": test,
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": one_or_several(label_column),
        "spans_column": spans_column,
        "start_column": start_column,
        "choices": one_or_several(choices),
        "train_rows": train_rows,
    }
    if any(each is not None for each in (*given.values(), dataset, data)):
        files = Files(dataset, data, {**given, "errors": errors})
        check_task(files, options, directory, tokenizer or corpus, length, json)
        return
    if options or corpus is not None or tokenizer is not None or length is not None:
        raise UserError("--option, --corpus, --tokenizer and --length belong to --train FILE or --dataset NAME")
    if directory is None:
        raise UserError("name a directory; or labelled data by --train FILE or --dataset NAME")
    _check_directory(Path(directory), json)


def _check_directory(directory: Path, json: bool) -> None:
    from bakeoff.checking import check as check_directory

    found = check_directory(directory, None if json else _print)
    if json:
        print_json(found.model_dump(mode="json"))
    problems = found.problems
    if problems:
        more = f" (and {len(problems) - 1} more, above)" if len(problems) > 1 else ""
        raise UserError(f"{problems[0]}{more}")
    if not json:
        files, listed = (sum(getattr(group, name) for group in found.groups) for name in ("files", "listed"))
        show(f"{directory}: a {found.kind}; {listed:,} of {files:,} files are what was written" + _rest(files, listed))


def _rest(files: int, listed: int) -> str:
    if listed == files:
        return ""
    if listed == 0:
        return ": it was made before checksums were kept, and no more is known than that it can be read"
    return f", of the other {files - listed:,} no checksums were kept"


def _print(group: "FileGroup") -> None:
    what = "damaged" if group.problems else "ok" if group.listed == group.files else "no checksum"
    if 0 < group.listed < group.files and not group.problems:
        what = f"ok, {group.files - group.listed} without checksum"
    count = f"{group.files} files, " if group.files > 1 else ""
    show(f"{group.name:<24}  {what:<12}  {count}{group.bytes:,} bytes")
    for problem in group.problems:
        show(f"  {problem}")
