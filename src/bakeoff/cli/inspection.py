"""`bakeoff peek` and `inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device, Json, Seed, Set, print_json, remark_unfinished
from bakeoff.cli.shared_options import of_checkpoint
from bakeoff.display.terminal import show


def peek(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[Path, typer.Option(help="Corpus, the directory that `bakeoff prepare` made.")],
    examples: Annotated[int, typer.Option(min=1, help="Number of rows to show.")] = 3,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Show rows of the held-out text instead of the training text.")
    ] = False,
    set: Set = [],  # noqa: B006
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Print a few examples as the model would be trained on them: what it reads, and what it has to predict.

    Example: bakeoff peek bert-mini --corpus corpora/mine --set input.length=64
    """
    from bakeoff.inspection.peek import peek as peek_at
    from bakeoff.inspection.terminal import print_peek
    from bakeoff.recipe_files import load_recipe

    found = peek_at(load_recipe(recipe, set), corpus, examples=examples, held_out=held_out, seed=seed)
    if json:
        print_json(found.model_dump())
    else:
        print_peek(found)


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

    found = inspect_run(run, corpus=corpus, out=out, examples=examples, device=device)
    opened = Run.open_trained(run)
    remark_unfinished(opened)
    if json:
        print_json(found.model_dump())
        return
    show(f"{'stack':<8} {'layer':>5} {'L2 distance':>12} {'cosine':>8} {'degrees':>8}  kernels")
    for layer in found.layers:
        figures = (layer.l2_distance, layer.cosine_similarity, layer.degrees)
        distance, cosine, degrees = ("-" if value is None else f"{value:.3f}" for value in figures)
        kernels = "; ".join(
            f"{len(each.weights)} of size {len(each.offsets)}, weight {each.mean_distance:.2f} tokens away on average"
            for each in layer.kernels
        )
        show(f"{layer.stack:<8} {layer.layer:>5} {distance:>12} {cosine:>8} {degrees:>8}  {kernels}".rstrip())
    folder = opened.home / "inspect" if out is None else out
    show(f"\n{folder / 'inspect.html'} has the figures, {folder / 'inspect.json'} the numbers.")
