"""`bakeoff tune`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.decorators import noted
from bakeoff.cli.shared.options import Device, Jobs, Json, Seed, Set, jobs_of, refuse_tokenizer
from bakeoff.display.terminal import tell, write_json


@noted
def tune(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[
        Path, typer.Option(help="Corpus, the directory that `bakeoff prepare` made; DIR:0.7,DIR:0.3 mixes several.")
    ],
    out: Annotated[Path, typer.Option(help="Directory to write all trials, the best recipe and the report to.")],
    trials: Annotated[int, typer.Option(min=1, max=999, help="Maximal number of trials.")] = 16,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Budget of one complete trial: tokens=5M, flops=1e15, minutes=5 or steps=1000. Default: the recipe's."
        ),
    ] = None,
    for_budget: Annotated[
        str | None,
        typer.Option(
            metavar="UNIT=AMOUNT",
            help=(
                "Budget of the training that you plan. The resulting recipe has this budget, and the learning rate "
                "is scaled to it."
            ),
        ),
    ] = None,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=RANGE",
            help=(
                "Key to search too, with a range, KEY=0.01..0.3, or values, KEY=0.1,0.2. May be repeated. The "
                "learning rate is always searched: in the range given here, or from an eighth of the recipe's rate "
                "to eight times that rate."
            ),
        ),
    ] = [],  # noqa: B006
    jobs: Jobs = "auto",
    seed: Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=99,
            help="Number of seeds of each trial, counted from --seed; the loss of a trial is the mean over them.",
        ),
    ] = 1,
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Search the learning rate of a recipe, and other keys, for the lowest held-out loss.

    Bad trials are stopped early. Give the same command to go on after an interruption.

    Example: bakeoff tune bert-mini --corpus corpora/mine --out searches/bert --budget minutes=5 --trials 16

    Example: bakeoff tune gpt-tiny --corpus corpora/mine --out searches/gpt --over model.dropout=0,0.1 --jobs 2
    """
    from bakeoff.optimization.budget import Budget
    from bakeoff.recipe_files import load_recipe
    from bakeoff.tuning.report import print_results
    from bakeoff.tuning.tune import tune as search

    refuse_tokenizer(set)
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
