"""The results of a search on the terminal: trials, best values, cost, and cautions."""

import shlex
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bakeoff.display.console import Console
from bakeoff.tuning.report import answers, cells, columns
from bakeoff.tuning.results import TuningResults


def print_results(results: TuningResults, out: Path) -> None:
    """Print the results, and the paths of recipe and report."""
    console = Console()
    keys = [each.key for each in results.ranges]
    title = f"{results.recipe}: trials by held-out loss"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for number, name in enumerate(columns(keys)):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for trial in results.ranked:
        table.add_row(*cells(trial, keys))
    console.print(table)
    for key, value in results.winner.values.items():
        console.print(f"{key}: {value!r}, before {results.before[key]!r}", style="bold", soft_wrap=True)
    for line in [*answers(results), *results.cautions]:
        console.print(f"- {line}", soft_wrap=True)
    recipe = shlex.quote(str(out / "recipe.yaml"))
    console.print(
        f"\nrecipe: bakeoff pretrain {recipe} --corpus {shlex.quote(results.corpus)} --out RUN", soft_wrap=True
    )
    console.print(f"report: {out / 'report.html'}", soft_wrap=True)
