"""Options that verbs share, and what their texts mean."""

from typing import Annotated, Literal

import typer

from bakeoff.cli.shared.completing import complete_tracker
from bakeoff.errors import UserError

Errors = Annotated[
    Literal["strict", "replace"],
    typer.Option(help="What to do with invalid UTF-8: refuse it, or replace it by U+FFFD."),
]


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda or mps.")]


Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option(
        help=(
            "Precision of products: float32; bfloat16, which rounds them to 3 digits; auto: bfloat16 where the device "
            "multiplies it faster (docs/use.md)."
        )
    ),
]


MOST = 1024
"""The largest number of jobs or threads."""


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


def numbers_of(option: str, text: str) -> list[int]:
    """The numbers of a text of whole numbers with commas between.

    Raises:
        UserError: the text is something else; the message names `option`.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{option} {text}: give whole numbers, with commas between them") from None
