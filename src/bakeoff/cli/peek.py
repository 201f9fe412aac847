"""`bakeoff peek`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json, Set
from bakeoff.cli.shared.printing import print_json
from bakeoff.unread_keys import require_effect


@taking(options=options_from("bakeoff.inspection.peek.peek", "examples", "held_out", "seed", examples={"min": 1}))
def peek(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[Path, typer.Option(help="Corpus, the directory that `bakeoff prepare` made.")],
    *,
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Print a few examples as the model would be trained on them: what it reads, and what it has to predict.

    Example: bakeoff peek bert-mini --corpus corpora/mine --set input.length=64
    """
    from bakeoff.inspection.peek import peek as peek_at
    from bakeoff.inspection.terminal import print_peek
    from bakeoff.recipe_files import load_recipe

    require_effect("peek", set)
    shown = peek_at(load_recipe(recipe, set), corpus, **options)
    if json:
        print_json(shown.model_dump())
    else:
        print_peek(shown)
