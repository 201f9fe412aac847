"""`bakeoff import`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json
from bakeoff.display.terminal import show


@noted
@taking(options=options_from("bakeoff.interop.hugging_face.importing.import_model", "pairs"))
def import_model(
    source: Annotated[
        str, typer.Argument(help="Folder saved by transformers, or OWNER/NAME[@REVISION] on the Hugging Face Hub.")
    ],
    out: Annotated[Path, typer.Option(help="Directory to write the run to.")],
    *,
    options: dict[str, Any],
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

    run = read(source, out, head=not without_head, **options)
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
