"""`bakeoff distill`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_recipe, complete_run
from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set, Threads, Track
from bakeoff.cli.shared.pretraining import (
    START_OPTIONS,
    STOPPING_OPTIONS,
    TRAINING_OPTIONS,
    CorpusToTrain,
    Out,
    pretrained,
)
from bakeoff.errors import UserError


@noted
@taking(
    distillation=options_from(
        "bakeoff.objectives.distillation.DistillationConfig",
        *("weight", "temperature"),
        weight={"default": None, "metavar": "SHARE"},
        temperature={"default": None, "metavar": "T"},
    ),
    start=START_OPTIONS,
    options=TRAINING_OPTIONS,
    stopping=STOPPING_OPTIONS,
)
def distill(
    out: Out,
    teachers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Finished pre-trained runs, whose probabilities are averaged. With --resume, those of that run.",
            autocompletion=complete_run,
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Recipe of the student: its name or file. With --resume, the recipe of that run.",
            autocompletion=complete_recipe,
        ),
    ] = None,
    corpus: CorpusToTrain = None,
    *,
    distillation: dict[str, Any],
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    threads: Threads = "auto",
    start: dict[str, Any],
    stopping: dict[str, Any],
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Pre-train a model that learns from the probabilities of trained ones, too.

    The result is an ordinary run; a larger model can so teach a smaller one, or several one of their size.

    Example: bakeoff distill runs/a runs/b --into bert-mini --corpus corpora/mine --out runs/from-both --budget
    minutes=10

    Example: bakeoff distill runs/bert-large --into bert-mini --corpus corpora/mine --out runs/small --weight 0.9
    --temperature 2
    """
    teachers = teachers or []
    goes_on = options["resume"] or options["finish_now"]
    if bool(teachers) != (into is not None) or not (teachers or goes_on):
        missing = "the runs that teach" if into is not None else "the recipe that learns, --into RECIPE"
        raise UserError(f"distill: give {missing}: bakeoff distill RUN... --into RECIPE --corpus DIR --out DIR")
    if not teachers and distillation:
        raise UserError(f"--{next(iter(distillation))}: belongs to RUN... --into RECIPE; a resumed run keeps its own")
    taught = {"teachers": [_plain(each) for each in teachers], **distillation}
    pretrained(
        into,
        corpus,
        out,
        overrides=set,
        beside={f"training.distillation.{key}": (value, _NAMES[key]) for key, value in taught.items() if teachers},
        options=options,
        start=start,
        stopping=stopping,
        device=device,
        threads=threads,
        track=track,
        json=json,
    )


_NAMES = {"teachers": "RUN", "weight": "--weight", "temperature": "--temperature"}
"""What replaces each key of the recipe on the command line."""


def _plain(path: str) -> str:
    """A path as a run's files have it, without a slash at its end."""
    return str(Path(path))
