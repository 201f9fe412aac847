"""`bakeoff export`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json
from bakeoff.display.terminal import show


@noted
@of_checkpoint("run")
@taking(
    form=options_from("bakeoff.interop.export.export", "to"),
    options=options_from(
        "bakeoff.interop.onnx.export.export",
        "quantize",
        "measure_on",
        about="With --to onnx",
        measure_on={"about": "With --quantize"},
    ),
    pooled=options_from(
        "bakeoff.interop.sentence_transformers.export",
        "pooling",
        about="With --to sentence-transformers or gguf",
        pooling={"default": None},
    ),
)
def export(
    run: Annotated[Path, typer.Argument(help="A pre-trained or fine-tuned run.")],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    *,
    form: dict[str, Any],
    options: dict[str, Any],
    pooled: dict[str, Any],
    json: Json = False,
) -> None:
    """Write a run in the form of another tool, read back and compared.

    Example: bakeoff export runs/bert --to hf --out exported/bert

    Example: bakeoff export runs/bert --checkpoint words=1M --out exported/bert-1M
    """
    from bakeoff.interop.export import export as write

    done = write(run, out, **form, **options, **pooled)
    if json:
        print_json({**done._asdict(), "path": str(done.path)})
        return
    show(f"{done.path}: loads with {done.loads_with}")
    for remark in done.remarks:
        show(remark)
