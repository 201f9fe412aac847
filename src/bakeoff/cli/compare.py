"""`bakeoff compare`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared.decorators import noted
from bakeoff.cli.shared.options import Jobs, Json, Track, jobs_of
from bakeoff.display.terminal import tell, write_json


@noted
def compare(
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file (docs/comparison.md).")],
    out: Annotated[Path, typer.Option(help="Directory to write all runs and the report to.")],
    jobs: Jobs = "auto",
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Run recipes x seeds x tasks under one budget, and report which differences are real.

    What has finished is not run again: give the same command to go on after an interruption.

    Example: bakeoff compare plan.yaml --out comparisons/first
    """
    from bakeoff.comparison.execution import compare as run_comparison
    from bakeoff.comparison.reporting.terminal import print_results
    from bakeoff.tracking.track import track as mirrored

    with mirrored(out, track):
        results = run_comparison(plan, out, jobs=jobs_of(jobs), progress=tell)
    if json:
        write_json(results.model_dump_json(indent=2))
    else:
        print_results(results, out)
