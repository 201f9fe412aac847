"""`bakeoff compare`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, taking
from bakeoff.cli.shared.forecast import DryRun, print_forecast
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Json, Track
from bakeoff.display.terminal import tell, write_json


@noted
@taking(
    options=options_from(
        "bakeoff.comparison.execution.compare",
        "jobs",
        "ray",
        "only",
        "add_seeds",
        ray={"metavar": "ADDRESS"},
        only={"metavar": "RECIPE"},
    )
)
def compare(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file (docs/comparison.md).")],
    out: Annotated[Path, typer.Option(help="Directory to write all runs and the report to.")],
    *,
    options: dict[str, Any],
    dry_run: DryRun = False,
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Run recipes x seeds x tasks under one budget, and report which differences are real.

    What has finished is not run again: give the same command to go on after an interruption.

    Example: bakeoff compare plan.yaml --out comparisons/first

    Example: bakeoff compare plan.yaml --out comparisons/first --dry-run

    Example: bakeoff compare plan.yaml --out comparisons/first --only bert-mini

    Example: bakeoff compare plan.yaml --out comparisons/first --add-seeds 2
    """
    from bakeoff.comparison.execution import compare as run_comparison
    from bakeoff.comparison.reporting.terminal import print_results
    from bakeoff.tracking.track import track as mirrored

    if dry_run:
        from bakeoff.comparison.forecast import forecast_comparison

        print_forecast(forecast_comparison(plan, out, progress=tell, **options), json)
        return
    with mirrored(out, track):
        results = run_comparison(plan, out, progress=tell, **options)
    if json:
        write_json(results.model_dump_json(indent=2))
    else:
        print_results(results, out)
