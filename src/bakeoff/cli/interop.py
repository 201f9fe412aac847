"""`bakeoff export`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Json, print_json
from bakeoff.display.terminal import show


def export(
    run: Annotated[Path, typer.Argument(help="A pre-trained or fine-tuned run.")],
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    to: Annotated[str, typer.Option(help="hf, onnx, sentence-transformers or gguf.")] = "hf",
    json: Json = False,
) -> None:
    """Write a run in the form of another tool, read back and compared.

    Example: bakeoff export runs/bert --to hf --out exported/bert
    """
    from bakeoff.interop.export import export as write

    done = write(run, out, to=to)
    if json:
        print_json({**done._asdict(), "path": str(done.path)})
        return
    show(f"{done.path}: loads with {done.loads_with}")
    for remark in done.remarks:
        show(remark)
