"""`bakeoff pretrain`."""

from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_recipe
from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.options import Device, Json, Set, Threads, Track
from bakeoff.cli.shared.pretraining import (
    START_OPTIONS,
    STOPPING_OPTIONS,
    TRAINING_OPTIONS,
    CorpusToTrain,
    Out,
    pretrained,
)


@noted
@taking(start=START_OPTIONS, options=TRAINING_OPTIONS, stopping=STOPPING_OPTIONS)
def pretrain(
    out: Out,
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe's name or file. With --from or --resume, the recipe of that run.",
            autocompletion=complete_recipe,
        ),
    ] = None,
    corpus: CorpusToTrain = None,
    *,
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    threads: Threads = "auto",
    start: dict[str, Any],
    stopping: dict[str, Any],
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Pre-train a model on a corpus.

    Example: bakeoff pretrain bert-mini --corpus corpora/mine --out runs/bert --budget minutes=10

    Example: bakeoff pretrain transformer-base-wmt --corpus corpora/de-en --out runs/de-en --average-last 5

    Example: bakeoff pretrain gpt-tiny --corpus corpora/mine --out runs/gpt --budget words=10M --save-at
    words=1M..10M:1M

    Example: bakeoff pretrain --out runs/bert --resume --budget minutes=20
    """
    pretrained(
        recipe,
        corpus,
        out,
        overrides=set,
        options=options,
        start=start,
        stopping=stopping,
        device=device,
        threads=threads,
        track=track,
        json=json,
    )
