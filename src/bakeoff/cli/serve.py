"""`bakeoff serve`."""

import os
import threading
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.options import Device
from bakeoff.display.terminal import tell
from bakeoff.errors import Interrupted


def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Pre-trained and fine-tuned runs.")],
    comparison: Annotated[Path | None, typer.Option(metavar="DIR", help="Comparison whose report to show.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. 127.0.0.1 can be reached only from this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free port.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer only clients that send the token in this file.")
    ] = None,
    open: Annotated[
        bool, typer.Option("--open", help="Answer everybody who can reach the host, without a token.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Try models in a browser, and answer programs over HTTP, until Ctrl-C.

    Example: bakeoff serve runs/bert runs/gpt --port 8000
    """
    from bakeoff.web.serve import serve as answer

    try:
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
    except Interrupted as stop:
        from bakeoff.web.worker import ModelThread

        if any(isinstance(each, ModelThread) for each in threading.enumerate()):
            # It is in one operation of the library, and the end of the interpreter would abort the process there.
            tell(f"bakeoff: {stop}")
            os._exit(128 + stop.signal_number)
        raise
