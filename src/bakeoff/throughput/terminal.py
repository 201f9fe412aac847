"""Measured speeds as tables on the terminal."""

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bakeoff.display.console import Console
from bakeoff.throughput.results import Quantity, SpeedResults, shown


def print_speeds(results: SpeedResults) -> None:
    """Print a table for each quantity, and the remarks."""
    console = Console()
    for quantity in shown(results):
        console.print(_table(results, quantity))
    for line in results.remarks():
        console.print(f"- {line}")


def _table(results: SpeedResults, quantity: Quantity) -> Table:
    table = Table(title=quantity.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("recipe", no_wrap=True)
    for length in results.lengths:
        table.add_column(str(length), justify="right", no_wrap=True)
    for name in results.recipes:
        table.add_row(name, *(quantity.of(results.at(name, length)) for length in results.lengths))
    return table
