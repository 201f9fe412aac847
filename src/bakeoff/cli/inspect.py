"""`bakeoff inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint
from bakeoff.cli.shared.options import Device, Json
from bakeoff.cli.shared.printing import print_json, remark_unfinished
from bakeoff.display.terminal import show


@noted
@of_checkpoint("run")
def inspect(
    run: Annotated[Path, typer.Argument(help="A pre-trained run.")],
    corpus: Annotated[
        Path | None, typer.Option(help="Corpus whose held-out text is read. Default: the corpus of the run.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the results to. Default: RUN/inspect.")] = None,
    examples: Annotated[int, typer.Option(min=1, help="Number of held-out rows to read.")] = 64,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure what each layer does to a text, and draw the kernels of convolutions.

    Example: bakeoff inspect runs/albert
    """
    from bakeoff.inspection.inspect import inspect as inspect_run
    from bakeoff.runs.run import Run

    inspection = inspect_run(run, corpus=corpus, out=out, examples=examples, device=device)
    opened = Run.open_trained(run)
    remark_unfinished(opened)
    if json:
        print_json(inspection.model_dump())
        return
    show(f"{'stack':<8} {'layer':>5} {'L2 distance':>12} {'cosine':>8} {'degrees':>8}  kernels")
    for layer in inspection.layers:
        figures = (layer.l2_distance, layer.cosine_similarity, layer.degrees)
        distance, cosine, degrees = ("-" if value is None else f"{value:.3f}" for value in figures)
        kernels = "; ".join(
            f"{len(each.weights)} of size {len(each.offsets)}, weight {each.mean_distance:.2f} tokens away on average"
            for each in layer.kernels
        )
        show(f"{layer.stack:<8} {layer.layer:>5} {distance:>12} {cosine:>8} {degrees:>8}  {kernels}".rstrip())
    folder = opened.home / "inspect" if out is None else out
    show(f"\n{folder / 'inspect.html'} has the figures, {folder / 'inspect.json'} the numbers.")
