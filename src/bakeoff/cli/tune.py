"""`bakeoff tune`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.forecast import DryRun, print_forecast
from bakeoff.cli.shared.makers import BUDGET, options_from
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.display.terminal import tell, write_json
from bakeoff.optimization.budget import Budget
from bakeoff.unread_keys import require_effect


@noted
@taking(
    options=options_from(
        "bakeoff.tuning.tune.tune",
        *("trials", "budget", "for_budget", "over", "jobs", "ray", "seed", "seeds"),
        trials={"min": 1, "max": 999},
        for_budget={**BUDGET, "parser": partial(Budget.parse_text, option="--for-budget")},
        over={"type": list[str], "metavar": "KEY=RANGE"},
        ray={"metavar": "ADDRESS"},
        seeds={"min": 1, "max": 99},
    )
)
def tune(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[
        Path, typer.Option(help="Corpus, the directory that `bakeoff prepare` made; DIR:0.7,DIR:0.3 mixes several.")
    ],
    out: Annotated[Path, typer.Option(help="Directory to write all trials, the best recipe and the report to.")],
    *,
    options: dict[str, Any],
    set: Set = [],  # noqa: B006
    device: Device = "auto",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Search the learning rate of a recipe, and other keys, for the lowest held-out loss.

    Bad trials are stopped early. Give the same command to go on after an interruption.

    Example: bakeoff tune bert-mini --corpus corpora/mine --out searches/bert --budget minutes=5 --trials 16

    Example: bakeoff tune gpt-tiny --corpus corpora/mine --out searches/gpt --over model.dropout=0,0.1 --jobs 2
    """
    from bakeoff.recipe_files import load_recipe
    from bakeoff.tuning.report import print_results
    from bakeoff.tuning.tune import tune as search

    replaced = {"training.budget": "--budget"} if "budget" in options else {}
    require_effect("tune", set, {**replaced, **{each.partition("=")[0].strip(): "--over" for each in options["over"]}})
    arguments: dict[str, Any] = {"device": device, "progress": tell, **options}
    if dry_run:
        from bakeoff.tuning.forecast import forecast_search

        print_forecast(forecast_search(load_recipe(recipe, set), corpus, out, **arguments), json)
        return
    results = search(load_recipe(recipe, set), corpus, out, **arguments)
    if json:
        write_json(results.model_dump_json(indent=2))
    else:
        print_results(results, out)
