"""`bakeoff watch`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.completing import complete_run
from bakeoff.display.terminal import show
from bakeoff.errors import Interrupted, UserError


def watch(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run, a learning-rate search (tune), a comparison or a folder of runs.", autocompletion=complete_run
        ),
    ],
    every: Annotated[float, typer.Option(min=0.1, max=3600.0, help="Seconds between looks.")] = 1.0,
) -> None:
    """Follow a training in another terminal or process until it ends; Ctrl-C leaves it alone.

    Example: bakeoff watch runs/bert
    """
    from bakeoff.overview.listing import table
    from bakeoff.overview.watch import watch as follow

    try:
        ended = follow(run, every=every)
    except KeyboardInterrupt:
        raise Interrupted("stopped watching; the training goes on", signal.SIGINT) from None
    for line in table(ended):
        show(line)
    if len(ended) == 1 and ended[0].state == "stopped":
        raise UserError(f"{run}: stopped without an end; the command that began it goes on with --resume")
