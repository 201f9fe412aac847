"""`bakeoff export`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json
from bakeoff.display.terminal import show


@noted
@of_checkpoint("run")
def export(
    run: Annotated[Path, typer.Argument(help="A pre-trained or fine-tuned run.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    to: Annotated[str, typer.Option(help="Format: hf, onnx, sentence-transformers or gguf.")] = "hf",
    quantize: Annotated[
        str | None,
        typer.Option(
            help=(
                "With --to onnx: int8 stores weights in eight bits and measures what is lost in quality and gained in "
                "speed."
            )
        ),
    ] = None,
    measure_on: Annotated[
        Path | None,
        typer.Option(
            help=(
                "With --quantize: file to measure int8 on. Labelled rows for a fine-tuned run, otherwise texts, one "
                "per line."
            )
        ),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help=(
                "With --to sentence-transformers or gguf: how token vectors become one vector, mean, max (not for "
                "gguf) or cls.  [default: mean]"
            )
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a run in the form of another tool, read back and compared.

    Example: bakeoff export runs/bert --to hf --out exported/bert

    Example: bakeoff export runs/bert --checkpoint words=1M --out exported/bert-1M
    """
    from bakeoff.interop.export import export as write

    settings = {"quantize": quantize, "measure_on": measure_on, "pooling": pooling}
    done = write(run, out, to=to, **{name: value for name, value in settings.items() if value is not None})
    if json:
        print_json({**done._asdict(), "path": str(done.path)})
        return
    show(f"{done.path}: loads with {done.loads_with}")
    for remark in done.remarks:
        show(remark)
