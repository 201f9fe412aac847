"""`bakeoff import` and `bakeoff export`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Json, print_json
from bakeoff.cli.shared_options import of_checkpoint
from bakeoff.display.terminal import show


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

    given = {"quantize": quantize, "measure_on": measure_on, "pooling": pooling}
    done = write(run, out, to=to, **{name: value for name, value in given.items() if value is not None})
    if json:
        print_json({**done._asdict(), "path": str(done.path)})
        return
    show(f"{done.path}: loads with {done.loads_with}")
    for remark in done.remarks:
        show(remark)


def import_model(
    source: Annotated[
        str, typer.Argument(help="Folder saved by transformers, or OWNER/NAME[@REVISION] on the Hugging Face Hub.")
    ],
    out: Annotated[Path, typer.Option(help="Directory to write the run to.")],
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="The model was fine-tuned on pairs of texts (classification, multilabel or regression)."
        ),
    ] = False,
    without_head: Annotated[
        bool,
        typer.Option("--without-head", help="Drop the head of a fine-tuned model, which makes a pre-trained run."),
    ] = False,
    json: Json = False,
) -> None:
    """Make a run of a model that was trained elsewhere, a fine-tuned one of a fine-tuned model.

    Example: bakeoff import downloads/bert-base-uncased --out runs/bert
    """
    from bakeoff.interop.hugging_face.importing import import_model as read
    from bakeoff.runs.run import Run

    run = read(source, out, head=not without_head, pairs=pairs)
    imported, task = run.environment["imported"], None
    if isinstance(run, Run):
        parameters = run.summary["parameters"]
    else:
        parameters, task = run.results.parameters, run.task.kind
    if json:
        facts = {"run": str(run.path), "family": imported["model_type"], "parameters": parameters, "task": task}
        print_json(
            {**facts, "objectives": [part.kind for part in run.recipe.objective], "remarks": imported["remarks"]}
        )
        return
    kind = "" if task is None else f", fine-tuned for {task.replace('_', ' ')}"
    show(f"{run.path}: {imported['model_type']}{kind}, {parameters:,} parameters, {run.recipe.tokenizer}")
    for remark in imported["remarks"]:
        show(remark)
