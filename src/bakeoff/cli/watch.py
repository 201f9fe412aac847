"""`bakeoff watch`."""

import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_run
from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.display.terminal import show
from bakeoff.display.wording import counted
from bakeoff.errors import Interrupted, UserError


@taking(options=options_from("bakeoff.overview.watch.watch", "every", every={"min": 0.1, "max": 3600.0}))
def watch(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run, a learning-rate search (tune), a comparison or a folder of runs.", autocompletion=complete_run
        ),
    ],
    *,
    options: dict[str, Any],
) -> None:
    """Follow a training in another terminal or process until it ends; Ctrl-C leaves it alone.

    Example: bakeoff watch runs/bert
    """
    from bakeoff.overview.listing import table
    from bakeoff.overview.watch import watch as follow
    from bakeoff.runs.records import divergence
    from bakeoff.unfinished import search_of

    try:
        ended = follow(run, **options)
    except KeyboardInterrupt:
        raise Interrupted("stopped watching; the training goes on", signal.SIGINT) from None
    for line in table(ended):
        show(line)
    if len(ended) == 1 and (message := divergence(run)) is not None:
        again = f"; its comparison tries it again once {run} is deleted" if search_of(run) is None else ""
        raise UserError(f"{message}{again}")
    stopped = [entry for entry in ended if entry.state == "stopped"]
    if stopped and ended == stopped[:1]:
        command = "that began it goes on with --resume" if search_of(run) is None else "of its search goes on with it"
        raise UserError(f"{run}: stopped without an end; the command {command}")
    if stopped:
        raise UserError(
            f"{run}: {len(stopped)} of {counted(len(ended), 'training')} stopped without an end, the first "
            f"{stopped[0].path}; the command that began them goes on with them"
        )
