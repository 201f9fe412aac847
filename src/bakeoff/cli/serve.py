"""`bakeoff serve`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device
from bakeoff.display.terminal import tell


def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Pre-trained and fine-tuned runs.")],
    comparison: Annotated[Path | None, typer.Option(metavar="DIR", help="A comparison whose report is shown.")] = None,
    host: Annotated[str, typer.Option(help="127.0.0.1 is reached from this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer only who sends the token that stands in this file.")
    ] = None,
    open: Annotated[
        bool, typer.Option("--open", help="Answer everybody who reaches the host, without a token.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Try models in a browser, and answer programs over HTTP, until Ctrl-C.

    Example: bakeoff serve runs/bert runs/gpt --port 8000
    """
    from bakeoff.web.serve import serve as answer

    answer(
        runs,
        comparison=comparison,
        host=host,
        port=port,
        token_file=token_file,
        open=open,
        device=device,
        progress=tell,
    )
