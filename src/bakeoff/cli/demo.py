"""`bakeoff demo`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.decorators import noted


@noted
def demo(
    out: Annotated[Path, typer.Option(help="Directory to write the corpus, the runs and the report to.")] = Path(
        "demo"
    ),
    scale: Annotated[
        float, typer.Option(min=0.01, max=100.0, help="Multiple of the usual budget, e.g. 0.1 for a quick look.")
    ] = 1.0,
    files_only: Annotated[
        bool,
        typer.Option("--files-only", help="Write only the text and the labelled files, for your own experiments."),
    ] = False,
) -> None:
    """Go the whole path in minutes, on text that ships with Python: prepare, pre-train, fine-tune, compare.

    Example: bakeoff demo

    Example: bakeoff demo --files-only --out text
    """
    from bakeoff.demo.run import run_demo, write_demo_files

    if files_only:
        write_demo_files(out)
    else:
        run_demo(out, scale)
