"""`bakeoff inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device, Json, print_json


def inspect(
    run: Annotated[Path, typer.Argument(help="A finished pre-training.")],
    corpus: Annotated[Path | None, typer.Option(help="Its held-out text is read. Default: the run's own.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results. Default: RUN/inspect.")] = None,
    examples: Annotated[int, typer.Option(min=1, help="Rows of held-out text.")] = 64,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure what each layer does to a text, and draw the kernels of convolutions.

    Example: bakeoff inspect runs/albert
    """
    from bakeoff.inspection.inspect import inspect as inspect_run

    found = inspect_run(run, corpus=corpus, out=out, examples=examples, device=device)
    if json:
        print_json(found.model_dump())
        return
    print(f"{'stack':<8} {'layer':>5} {'L2 distance':>12} {'cosine':>8} {'degrees':>8}  kernels")
    for layer in found.layers:
        figures = (layer.l2_distance, layer.cosine_similarity, layer.degrees)
        distance, cosine, degrees = ("-" if value is None else f"{value:.3f}" for value in figures)
        kernels = "; ".join(
            f"{len(each.weights)} of size {len(each.offsets)}, weight {each.mean_distance:.2f} tokens away on average"
            for each in layer.kernels
        )
        print(f"{layer.stack:<8} {layer.layer:>5} {distance:>12} {cosine:>8} {degrees:>8}  {kernels}".rstrip())
    folder = run / "inspect" if out is None else out
    print(f"\n{folder / 'inspect.html'} has the figures, {folder / 'inspect.json'} the numbers.")
