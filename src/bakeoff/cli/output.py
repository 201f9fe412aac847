"""Options that verbs share, and the printing of results as text or JSON."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bakeoff.cli.completing import complete_tracker
from bakeoff.display.terminal import show, tell, write_json
from bakeoff.display.wording import number
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.runs.run import Run

Errors = Annotated[
    Literal["strict", "replace"],
    typer.Option(help="What to do with invalid UTF-8: refuse it, or replace it by U+FFFD."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda or mps.")]
LARGEST_SEED = 2**63 - 1
"""The largest seed that generators of random numbers take."""

MOST = 1024
"""The largest number of jobs or threads."""


def jobs_of(text: str) -> int | Literal["auto"]:
    """The number of jobs that `--jobs` gives.

    Raises:
        UserError: neither a number of processes nor auto.
    """
    return _number_or_auto("--jobs", text, "how many are trained side by side")


def threads_of(text: str) -> int | Literal["auto"]:
    """The number of threads that `--threads` gives.

    Raises:
        UserError: neither a number nor auto.
    """
    return _number_or_auto("--threads", text, "a number")


def _number_or_auto(option: str, text: str, wanted: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise UserError(f"{option} {text}: give {wanted}, or auto")
    return int(text)


Jobs = Annotated[
    str,
    typer.Option(
        metavar="N",
        help=(
            "Number of trainings that run at the same time; the results stay the same. auto: as many as there are "
            "cores, with one thread each, for small models; one at a time for large ones."
        ),
    ),
]

Threads = Annotated[
    str,
    typer.Option(
        metavar="N",
        help=(
            "Number of CPU threads; another number changes the last bits of results. auto: a short measurement "
            "decides. A resumed run keeps its number."
        ),
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything that is random.")]
Track = Annotated[
    list[str],
    typer.Option(
        "--track",
        metavar="NAME",
        help="Also log the training to tensorboard, trackio or wandb (docs/runs.md). May be repeated.",
        autocompletion=complete_tracker,
    ),
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the recipe, e.g. model.encoder.layers=6. May be repeated."
    ),
]


def print_json(values: Any) -> None:
    """Print a result as JSON on standard output."""
    write_json(json.dumps(values, indent=2, ensure_ascii=False, default=str))


def print_table(rows: Mapping[str, Any], say: Callable[[str], None] = show) -> None:
    """Print names and values as two columns, on standard output, or on standard error with `tell` as `say`."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        say(f"{name:<{width}}  {value}")


def remark_unfinished(run: "Run") -> None:
    """Print a remark on standard error if a run is unfinished, with the step of its weights."""
    if not run.finished:
        step, steps = run.step(), run.planned_steps
        tell(f"bakeoff: {run.path}: not finished; its weights are those of step {step:,} of {steps:,}")


def losses_text(figures: Mapping[str, Any], title: str = "held-out") -> dict[str, str]:
    """The figures of a validation, one row for each objective."""
    rows = {}
    reasons = figures.get("no_number", {})
    for name, loss in figures["losses"].items():
        if name in reasons:
            rows[f"{title} {name}"] = f"no number: {reasons[name]}"
            continue
        parts = [f"loss {loss:.4f}", f"accuracy {figures['accuracy'][name]:.4f}"]
        if name in figures["perplexity"]:
            bits = figures["bits_per_byte"][name]
            parts += [f"perplexity {figures['perplexity'][name]:.2f}", f"bits per byte {number(bits)}"]
            parts[-1] += f" ({reasons['bits_per_byte']})" if bits is None else ""
        rows[f"{title} {name}"] = "  ".join(parts)
    return rows
