"""The option of verbs that say what they would cost, and what it prints."""

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.display.terminal import show

if TYPE_CHECKING:
    from bakeoff.jobs.forecast import Forecast

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help=(
            "Print the trainings that would be done, their hours by measured speed, disk and memory, and end; nothing "
            "is written."
        ),
    ),
]


def print_forecast(forecast: "Forecast", json: bool) -> None:
    """Print a forecast as a table, or as JSON."""
    if json:
        print_json({**forecast.model_dump(mode="json"), **forecast.totals(), "problems": forecast.problems})
        return
    print_table(forecast.rows())
    for problem in forecast.problems:
        show(f"ATTENTION: {problem}")
