"""`bakeoff check`: a directory for damage, or labelled data for mistakes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.cli.shared.task_options import Files, Options, files_of, task_of
from bakeoff.display.terminal import show
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.checking import FileGroup
    from bakeoff.tasks.checks.findings import LengthFinding, SplitFinding, TaskFindings


_LABELS = 20
"""The most labels of a split that are shown; --json has all."""


@noted
@taking(
    files=files_of,
    measured=options_from("bakeoff.tasks.checks.examine.check_task", "length", length={"min": 1}),
)
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
    measured: dict[str, Any],
    json: Json = False,
) -> None:
    """Read every byte of a directory and compare it with its checksums; or look at labelled data before a training.

    For labelled data it shows the counts, the labels, the lengths, the texts that several splits share, likely
    mistakes, and what a training would refuse.

    Example: bakeoff check runs/bert

    Example: bakeoff check runs/bert --train train.tsv --dev dev.tsv --text-column sentence --label-column label

    Example: bakeoff check --dataset sst2 --data glue/SST-2 --corpus corpora/mine --length 64
    """
    length = measured.get("length")
    if files.named:
        _check_task(files, options, directory, tokenizer or corpus, length, json)
        return
    if options or corpus is not None or tokenizer is not None or length is not None:
        raise UserError("--option, --corpus, --tokenizer and --length belong to --train FILE or --dataset NAME")
    if directory is None:
        raise UserError("name a directory; or labelled data by --train FILE or --dataset NAME")
    _check_directory(Path(directory), json)


def _check_directory(directory: Path, json: bool) -> None:
    from bakeoff.checking import check as check_directory

    findings = check_directory(directory, None if json else _print_group)
    if json:
        print_json(findings.model_dump(mode="json"))
    problems = findings.problems
    if problems:
        more = f" (and {len(problems) - 1} more, above)" if len(problems) > 1 else ""
        raise UserError(f"{problems[0]}{more}")
    if not json:
        files, listed = (sum(getattr(group, name) for group in findings.groups) for name in ("files", "listed"))
        show(
            f"{directory}: a {findings.kind}; {listed:,} of {files:,} files are what was written" + _rest(files, listed)
        )
        for line in (*findings.remarks, findings.limits.text()):
            show(line)
        for problem in findings.limits.problems:
            show(f"ATTENTION: {problem}")


def _rest(files: int, listed: int) -> str:
    if listed == files:
        return ""
    if listed == 0:
        return ": it has no list of checksums, and no more is known than that it can be read"
    return f", of the other {files - listed:,} no checksums were kept"


def _print_group(group: "FileGroup") -> None:
    what = "damaged" if group.problems else "ok" if group.listed == group.files else "no checksum"
    if 0 < group.listed < group.files and not group.problems:
        what = f"ok, {group.files - group.listed} without checksum"
    count = f"{group.files} files, " if group.files > 1 else ""
    show(f"{group.name:<24}  {what:<12}  {count}{group.bytes:,} bytes")
    for problem in group.problems:
        show(f"  {problem}")


def _check_task(
    files: Files, options: Sequence[str], source: str | None, tokenizer: Path | None, length: int | None, json: bool
) -> None:
    """Look at labelled data and print the findings.

    Args:
        files: the files and their columns.
        options: settings of the task as KEY=VALUE.
        source: a run, or a recipe, whose rows are measured.
        tokenizer: path of the tokenizer that counts tokens, for a recipe or without a source.
        length: maximal length of a row in tokens; None: the length of the source's rows.
        json: print JSON.

    Raises:
        UserError: a mistake in the options, or a training would be refused; then the report is printed first.
    """
    from bakeoff.overrides import parse_overrides
    from bakeoff.tasks.checks.examine import check_task as examine

    settings = parse_overrides(options, "--option")
    task = task_of(files, settings, "check")
    if settings:
        raise UserError(f"--option {next(iter(settings))}: no setting of a task of {task.kind}; leave it out here")
    if length is not None and source is None and tokenizer is None:
        raise UserError("--length counts tokens: name a run, or give --corpus or --tokenizer")
    findings = examine(task, source, tokenizer=tokenizer, length=length)
    if json:
        print_json(findings.model_dump(mode="json"))
    else:
        _print_findings(findings)
    if findings.problems:
        more = f" (and {len(findings.problems) - 1} more)" if len(findings.problems) > 1 else ""
        raise UserError(f"{findings.problems[0]}{more}")


def _print_findings(findings: "TaskFindings") -> None:
    show(f"{findings.task}: {findings.kind}" + ("" if findings.metric is None else f", by {findings.metric}"))
    for split in findings.splits:
        show("")
        print_table(_rows(split))
        _print_labels(split)
    lines = {
        "without a model": ["  ".join(f"{name} {value:.4f}" for name, value in findings.simplest.items())],
        "note": findings.notes,
        "warning": findings.warnings,
        "problem": findings.problems,
    }
    show("")
    for title, texts in lines.items():
        for text in texts:
            if text:
                show(f"{title}: {text}")
    if not findings.warnings and not findings.problems:
        show("nothing here looks wrong")


def _rows(split: "SplitFinding") -> dict[str, str]:
    return {
        split.split: split.file,
        "examples": f"{split.examples:,}",
        split.lengths.unit: _length_text(split.lengths),
        **({} if split.hidden is None else {"unknown": str(split.hidden) or "none"}),
    }


def _length_text(lengths: "LengthFinding") -> str:
    if not lengths.quantiles:
        return "none"
    text = f"mean {lengths.mean:,}  " + "  ".join(f"{share} {count:,}" for share, count in lengths.quantiles.items())
    return text if lengths.longer is None else f"{text}  longer than {lengths.limit:,}: {lengths.longer:.1%}"


def _print_labels(split: "SplitFinding") -> None:
    shown = split.labels[:_LABELS]
    width = max((len(each.label) for each in shown), default=0)
    for each in shown:
        show(f"  {each.label:<{width}}  {each.count:>9,}  {each.share:6.1%}  {each.example} (line {each.line})")
    if len(split.labels) > len(shown):
        show(f"  and {len(split.labels) - len(shown)} labels more")
