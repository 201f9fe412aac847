"""Measured speeds, and the files that hold them."""

import io
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from bakeoff.config import Config
from bakeoff.display.console import Console, titled_table
from bakeoff.display.spreadsheet import write_table
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError
from bakeoff.json_files import require_replaceable

JSON, CSV, PAGE = "speed.json", "speed.csv", "speed.html"
"""The names of the files of a measurement, in the order in which they are written."""


class Measurement(Config):
    """The figures of one recipe at one length; None: not measured, or without meaning for the recipe."""

    recipe: str
    """The recipe's name."""
    length: int
    """T, tokens of a row of text."""
    rows: int
    """B, rows of a step."""
    parameters: int | None
    """Number of parameters, heads included."""
    position_table: int | None
    """Rows that the table of learned positions was lengthened to; None: the recipe's table suffices."""
    training_tokens_per_second: float | None
    """Tokens a second in a training step: forward, backward, optimizer."""
    inference_tokens_per_second: float | None
    """Tokens a second from ids to hidden states in evaluation mode."""
    latency_ms: float | None
    """Milliseconds of inference for a single row."""
    generation_ms: float | None
    """Milliseconds for one generated token after a row of this length, for causal models."""
    memory_bytes: int | None
    """Peak memory of a training step in bytes: weights, gradients, optimizer, activations."""
    problem: str | None
    """The reason why there are no figures; None: there are."""


class SpeedResults(Config):
    """All measurements and their settings."""

    environment: dict[str, Any]
    """Facts about the machine, and versions."""
    created: str
    """Time of the measurement in UTC, in ISO format."""
    batch_tokens: int
    """Tokens of a step, which has `batch_tokens // length` rows, at least one."""
    seconds: float
    """Least seconds of each measurement, which has at least three calls."""
    vocabulary: dict[str, int]
    """Size of each recipe's vocabulary."""
    precision: dict[str, str]
    """Precision of each recipe's computations."""
    measurements: list[Measurement]
    """The measurements, ordered by length, then by recipe."""

    @property
    def recipes(self) -> list[str]:
        """Names of the recipes, in the order in which they were given."""
        return list(self.vocabulary)

    @property
    def lengths(self) -> list[int]:
        """Measured lengths of rows in tokens, in rising order."""
        return sorted({each.length for each in self.measurements})

    def at(self, recipe: str, length: int) -> Measurement:
        """The measurement of a recipe at a length."""
        return next(each for each in self.measurements if (each.recipe, each.length) == (recipe, length))

    def remarks(self) -> list[str]:
        """Remarks that a reader of the figures needs: problems, and tables of positions that were lengthened."""
        lengths_of: dict[str, list[int]] = {}
        for each in self.measurements:
            if each.problem is not None:
                lengths_of.setdefault(f"{each.recipe}: {each.problem}", []).append(each.length)
            elif each.position_table is not None:
                lengths_of.setdefault(f"{each.recipe}: its table of positions was lengthened", []).append(each.length)
        return [f"{text} (length {', '.join(map(str, lengths))})" for text, lengths in lengths_of.items()]

    def write(self, folder: Path) -> None:
        """Write speed.json and speed.csv into a folder, which is made if needed."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / JSON, self.model_dump_json(indent=2) + "\n")
        text = io.StringIO()
        rows = [list(each.model_dump().values()) for each in self.measurements]
        write_table(text, [list(Measurement.model_fields), *rows])
        write_atomically(folder / CSV, text.getvalue())


def require_place(folder: Path) -> None:
    """Make the folder of the results; results of an earlier measurement may be there, and are replaced.

    Raises:
        UserError: the folder cannot be made, or has another file under the name of one of the results.
    """
    files = [folder / name for name in (JSON, CSV, PAGE)]
    require_replaceable(files, {"batch_tokens", "measurements"})
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}; choose another --out") from None


class Quantity(NamedTuple):
    """A figure for display."""

    field: str
    """The field of `Measurement`."""
    title: str
    """The name of the figure with its unit."""
    scale: float
    """The factor from the field to that unit."""

    def of(self, measurement: Measurement) -> str:
        """The figure with three significant digits, whole from 100 on; - if there is none."""
        value = getattr(measurement, self.field)
        if value is None:
            return "-"
        value *= self.scale
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


QUANTITIES = (
    Quantity("training_tokens_per_second", "training, tokens/s", 1.0),
    Quantity("inference_tokens_per_second", "inference, tokens/s", 1.0),
    Quantity("latency_ms", "latency of one row, ms", 1.0),
    Quantity("generation_ms", "writing a token, ms", 1.0),
    Quantity("memory_bytes", "peak memory of training, MiB", 2.0**-20),
)


def shown(results: SpeedResults) -> list[Quantity]:
    """The quantities for which any measurement has a figure."""
    return [q for q in QUANTITIES if any(getattr(each, q.field) is not None for each in results.measurements)]


def print_speeds(results: SpeedResults) -> None:
    """Print a table for each quantity, and the remarks."""
    console = Console()
    for quantity in shown(results):
        console.print(_table(results, quantity))
    for line in results.remarks():
        console.print(f"- {line}")


def _table(results: SpeedResults, quantity: Quantity) -> Table:
    table = titled_table(quantity.title)
    table.add_column("recipe", no_wrap=True)
    for length in results.lengths:
        table.add_column(str(length), justify="right", no_wrap=True)
    for name in results.recipes:
        table.add_row(name, *(quantity.of(results.at(name, length)) for length in results.lengths))
    return table
