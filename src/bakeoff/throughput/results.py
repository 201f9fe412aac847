"""What was measured, and the files that hold it."""

import io
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.config import Config
from bakeoff.display.spreadsheet import write_table
from bakeoff.durable import write_atomically


class Measurement(Config):
    """One recipe at one length; a figure is None where it could not be had or makes no sense."""

    recipe: str
    """The recipe's name."""
    length: int
    """T, tokens of a row of text."""
    rows: int
    """B, rows of a step."""
    parameters: int | None
    """Number of parameters, heads included."""
    position_table: int | None
    """Rows that the table of learned positions was given for this length; None where the recipe's own reaches."""
    training_tokens_per_second: float | None
    """Tokens a second of a training step: forward, backward, optimizer."""
    inference_tokens_per_second: float | None
    """Tokens a second from ids to hidden states in evaluation mode."""
    latency_ms: float | None
    """The same for a single row, in milliseconds."""
    generation_ms: float | None
    """Milliseconds in which a causal model writes a token behind a row of this length."""
    memory_bytes: int | None
    """Peak of a training step: weights, gradients, optimizer, activations."""
    problem: str | None
    """Why there are no figures."""


class SpeedResults(Config):
    """All measurements and what they were made with."""

    environment: dict[str, Any]
    """The machine and the versions."""
    created: str
    """When, in UTC."""
    batch_tokens: int
    """Tokens of a step: rows are this number divided by the length, one at least."""
    seconds: float
    """Time of each measurement at least, three calls at least."""
    vocabulary: dict[str, int]
    """Size of each recipe's vocabulary."""
    precision: dict[str, str]
    """The precision that each recipe computes in."""
    measurements: list[Measurement]
    """By length, then by recipe."""

    @property
    def recipes(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self.vocabulary)

    @property
    def lengths(self) -> list[int]:
        """Lengths of rows in tokens that were measured, from the shortest on."""
        return sorted({each.length for each in self.measurements})

    def at(self, recipe: str, length: int) -> Measurement:
        """The measurement of a recipe at a length."""
        return next(each for each in self.measurements if (each.recipe, each.length) == (recipe, length))

    def remarks(self) -> list[str]:
        """What a reader of the figures has to know: problems, and tables that were lengthened."""
        found: dict[str, list[int]] = {}
        for each in self.measurements:
            if each.problem is not None:
                found.setdefault(f"{each.recipe}: {each.problem}", []).append(each.length)
            elif each.position_table is not None:
                found.setdefault(f"{each.recipe}: its table of positions was lengthened", []).append(each.length)
        return [f"{text} (length {', '.join(map(str, lengths))})" for text, lengths in found.items()]

    def write(self, folder: Path) -> None:
        """Write `speed.json` and `speed.csv`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "speed.json", self.model_dump_json(indent=2) + "\n")
        text = io.StringIO()
        rows = [list(each.model_dump().values()) for each in self.measurements]
        write_table(text, [list(Measurement.model_fields), *rows])
        write_atomically(folder / "speed.csv", text.getvalue())


class Quantity(NamedTuple):
    """One of the figures, as it is shown."""

    field: str
    """The measurement's field."""
    title: str
    """Its name with its unit."""
    scale: float
    """What the field is multiplied by for that unit."""

    def of(self, measurement: Measurement) -> str:
        """The figure to three digits, more where they stand before the point; - where there is none."""
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
    """The quantities of which there is a figure."""
    return [q for q in QUANTITIES if any(getattr(each, q.field) is not None for each in results.measurements)]
