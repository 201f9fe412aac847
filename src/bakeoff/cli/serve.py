"""`bakeoff serve`."""

import os
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Precision
from bakeoff.display.terminal import tell
from bakeoff.errors import Interrupted


@taking(
    options=options_from(
        "bakeoff.web.serve.serve",
        *("comparison", "host", "port", "token_file", "open"),
        comparison={"metavar": "DIR"},
        port={"min": 0, "max": 65535},
        token_file={"metavar": "FILE"},
    )
)
def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Pre-trained and fine-tuned runs.")],
    *,
    options: dict[str, Any],
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Try models in a browser, and answer programs over HTTP, until Ctrl-C.

    Example: bakeoff serve runs/bert runs/gpt --port 8000
    """
    from bakeoff.web.serve import serve as answer

    try:
        answer(runs, device=device, precision=precision, progress=tell, **options)
    except Interrupted as stop:
        from bakeoff.web.worker import ModelThread

        if any(isinstance(each, ModelThread) for each in threading.enumerate()):
            # It is in one operation of the library, and the end of the interpreter would abort the process there.
            tell(f"bakeoff: {stop}")
            os._exit(128 + stop.signal_number)
        raise
