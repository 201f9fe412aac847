"""The report of `bakeoff check` on labelled data."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.cli.output import print_json, print_table
from bakeoff.cli.task_values import Files, task_of
from bakeoff.display.terminal import show
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.checks.findings import LengthFinding, SplitFinding, TaskFindings

_LABELS = 20
"""The most labels of a split that are shown; --json has all."""


def check_task(
    files: Files, options: Sequence[str], source: str | None, tokenizer: Path | None, length: int | None, json: bool
) -> None:
    """Look at labelled data and print what was found.

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
    from bakeoff.overrides import parse_override
    from bakeoff.tasks.checks.examine import check_task as examine

    settings = dict(parse_override(text, "--option") for text in options)
    task = task_of(files, settings, "check")
    if settings:
        raise UserError(f"--option {next(iter(settings))}: no setting of a task of {task.kind}; leave it out here")
    if length is not None and source is None and tokenizer is None:
        raise UserError("--length counts tokens: name a run, or give --corpus or --tokenizer")
    found = examine(task, source, tokenizer=tokenizer, length=length)
    if json:
        print_json(found.model_dump(mode="json"))
    else:
        _print(found)
    if found.problems:
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise UserError(f"{found.problems[0]}{more}")


def _print(found: "TaskFindings") -> None:
    show(f"{found.task}: {found.kind}" + ("" if found.metric is None else f", by {found.metric}"))
    for split in found.splits:
        show("")
        print_table(_rows(split))
        _print_labels(split)
    lines = {
        "without a model": ["  ".join(f"{name} {value:.4f}" for name, value in found.simplest.items())],
        "note": found.notes,
        "warning": found.warnings,
        "problem": found.problems,
    }
    show("")
    for title, texts in lines.items():
        for text in texts:
            if text:
                show(f"{title}: {text}")
    if not found.warnings and not found.problems:
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
