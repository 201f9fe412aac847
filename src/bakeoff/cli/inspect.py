"""`bakeoff inspect`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json
from bakeoff.cli.shared.printing import print_json, remark_unfinished
from bakeoff.display.terminal import show


@noted
@of_checkpoint("run")
@taking(options=options_from("bakeoff.inspection.inspect.inspect", "corpus", "out", "examples", examples={"min": 1}))
def inspect(
    run: Annotated[Path, typer.Argument(help="A pre-trained run.")],
    *,
    options: dict[str, Any],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure what each layer does to a text, and draw the kernels of convolutions.

    Example: bakeoff inspect runs/albert
    """
    from bakeoff.inspection.inspect import inspect as inspect_run
    from bakeoff.runs.run import Run

    inspection = inspect_run(run, device=device, **options)
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
    folder = options.get("out", opened.home / "inspect")
    show(f"\n{folder / 'inspect.html'} has the figures, {folder / 'inspect.json'} the numbers.")
