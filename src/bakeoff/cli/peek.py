"""`bakeoff peek`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.options import Json, Seed, Set
from bakeoff.cli.shared.printing import print_json


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

    shown = peek_at(load_recipe(recipe, set), corpus, examples=examples, held_out=held_out, seed=seed)
    if json:
        print_json(shown.model_dump())
    else:
        print_peek(shown)
