"""`bakeoff runs`."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bakeoff.cli.shared.completing import complete_run
from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json
from bakeoff.display.terminal import show, tell
from bakeoff.errors import UserError


@taking(order=options_from("bakeoff.overview.listing.list_runs", "sort"))
def runs(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN|FOLDER]...",
            help="Runs, or folders with runs. Default: the current folder.",
            autocompletion=complete_run,
        ),
    ] = None,
    *,
    order: dict[str, Any],
    plot: Annotated[bool, typer.Option("--plot", help="Draw the curves of the loss.")] = False,
    over: Annotated[
        str, typer.Option(help="With --plot: the horizontal axis, tokens, words, steps, seconds or flops.")
    ] = "tokens",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --plot: file to draw to (.html, .svg or .png) instead of the terminal."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the runs below a folder, or draw their curves.

    Example: bakeoff runs --sort loss

    Example: bakeoff runs runs/bert runs/conv --plot --out curves.html
    """
    from bakeoff.overview.curves import Axis, as_json, curves
    from bakeoff.overview.listing import list_runs, table

    folders = list(paths or [Path()])
    if not plot and out is None:
        if over != "tokens":
            raise UserError(f"--over {over} is the axis of curves; give --plot or --out, too")
        entries = list_runs(folders, **order)
        if json:
            print_json([entry.model_dump(mode="json") for entry in entries])
        elif entries:
            for line in table(entries):
                show(line)
        else:
            tell(f"{', '.join(map(str, folders))}: no runs here")
        return
    axis = cast(Axis, over)
    if out is not None:
        from bakeoff.overview.page import require_out, write_curves

        require_out(out)
        write_curves(curves(folders, axis), axis, out)
        show(str(out))
        return
    from bakeoff.overview.text_chart import text_chart

    drawn = curves(folders, axis)
    if json:
        print_json(as_json(drawn))
        return
    for line in text_chart(drawn, axis):
        show(line)
