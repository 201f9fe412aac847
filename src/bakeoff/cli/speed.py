"""`bakeoff speed`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.display.terminal import show, tell, write_json
from bakeoff.unread_keys import require_effect


@noted
@taking(
    options=options_from(
        "bakeoff.throughput.measure.speed",
        *("batch_tokens", "vocabulary", "seconds", "most_seconds"),
        batch_tokens={"min": 1, "max": 2**24},
        vocabulary={"min": 6, "max": 2**22},
        seconds={"min": 0.0, "max": 3600.0},
        most_seconds={"min": 0.0, "max": 86400.0},
    )
)
def speed(
    recipes: Annotated[list[str], typer.Argument(metavar="RECIPE...", help="Names or files of recipes.")],
    lengths: Annotated[
        str, typer.Option(help="Lengths of rows in tokens: 64,256,1024, or 64..4096, which doubles from 64 to 4096.")
    ] = "64..4096",
    *,
    options: dict[str, Any],
    out: Annotated[Path | None, typer.Option(help="Folder to write speed.json, speed.csv and speed.html to.")] = None,
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure how fast recipes train, read and write, and their memory, against the length of a row.

    Example: bakeoff speed bert-mini conv-light-encoder-tiny --vocabulary 8192 --lengths 64..1024 --out speeds
    """
    from bakeoff.recipe_files import load_recipe
    from bakeoff.throughput.measure import parse_lengths
    from bakeoff.throughput.measure import speed as measure
    from bakeoff.throughput.results import print_speeds

    require_effect("speed", set)
    results = measure(
        [load_recipe(recipe, set) for recipe in recipes],
        parse_lengths(lengths),
        device=device,
        out=out,
        progress=tell,
        **options,
    )
    if json:
        write_json(results.model_dump_json(indent=2))
        return
    print_speeds(results)
    if out is not None:
        show(f"page: {out / 'speed.html'}")
