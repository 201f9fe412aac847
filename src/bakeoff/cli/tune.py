"""`bakeoff tune`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device, Jobs, Json, Seed, Set, jobs_of
from bakeoff.display.terminal import tell, write_json


def tune(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[Path, typer.Option(help="Directory that `bakeoff prepare` made; or DIR:0.7,DIR:0.3.")],
    out: Annotated[Path, typer.Option(help="Directory of all trials, the best recipe and the report.")],
    trials: Annotated[int, typer.Option(min=1, max=999, help="Trials at most.")] = 16,
    budget: Annotated[
        str | None,
        typer.Option(help="Of one whole trial: tokens=5M, flops=1e15, minutes=5, steps=1000. Default: the recipe's."),
    ] = None,
    for_budget: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT=AMOUNT",
            help="Of the training that is to come: the recipe that comes out has it, with the rate carried there.",
        ),
    ] = None,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=RANGE",
            help="Search this key, too: 0.01..0.3, or values 0.1,0.2. The learning rate always is, from an eighth of "
            "the recipe's to eight times it, or in the range given here.",
        ),
    ] = [],  # noqa: B006
    jobs: Jobs = "auto",
    seed: Seed = 0,
    seeds: Annotated[
        int, typer.Option(min=1, max=99, help="Seeds of each trial, from --seed on; its loss is the mean over them.")
    ] = 1,
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Search the learning rate of a recipe, and other keys, for the lowest held-out loss.

    Bad trials are stopped early. Give the same command to go on after an interruption.

    Example: bakeoff tune bert-mini --corpus corpora/mine --out searches/bert --budget minutes=5 --trials 16

    Example: bakeoff tune gpt-mini --corpus corpora/mine --out searches/gpt --over model.dropout=0,0.1 --jobs 2
    """
    from bakeoff.optimization.budget import Budget
    from bakeoff.recipe_files import load_recipe
    from bakeoff.tuning.terminal import print_results
    from bakeoff.tuning.tune import tune as search

    results = search(
        load_recipe(recipe, set),
        corpus,
        out,
        over=over,
        trials=trials,
        budget=None if budget is None else Budget.parse_text(budget),
        jobs=jobs_of(jobs),
        seed=seed,
        seeds=seeds,
        for_budget=None if for_budget is None else Budget.parse_text(for_budget),
        device=device,
        progress=tell,
    )
    if json:
        write_json(results.model_dump_json(indent=2))
    else:
        print_results(results, out)
