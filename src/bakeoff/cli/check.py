"""`bakeoff check`: a directory for damage, or labelled data for mistakes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.check_task import check_task
from bakeoff.cli.output import Json, print_json
from bakeoff.cli.shared_options import taking
from bakeoff.cli.task_values import Files, Options, files_of
from bakeoff.display.terminal import show
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.checking import FileGroup


@taking(files=files_of)
def check(
    directory: Annotated[
        str | None,
        typer.Argument(
            metavar="DIRECTORY|RUN|RECIPE",
            help=(
                "A corpus, a run, a fine-tuned run or a comparison. With labelled data: the run or recipe that would"
                " be trained on it."
            ),
        ),
    ] = None,
    *,
    files: Files,
    options: Options = [],  # noqa: B006
    corpus: Annotated[Path | None, typer.Option(help="Corpus whose tokenizer counts the tokens.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json that counts the tokens, instead of --corpus.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximal length of a row in tokens; longer rows are cut. Default: the length of the run's rows.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read every byte of a directory and compare it with its checksums; or look at labelled data before a training.

    For labelled data it shows the counts, the labels, the lengths, the texts that several splits share, likely
    mistakes, and what a training would refuse.

    Example: bakeoff check runs/bert

    Example: bakeoff check runs/bert --train train.tsv --dev dev.tsv --text-column sentence --label-column label

    Example: bakeoff check --dataset sst2 --data glue/SST-2 --corpus corpora/mine --length 64
    """
    if files.named:
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
        for remark in found.remarks:
            show(remark)


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
