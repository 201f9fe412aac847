"""The contract of a measure: what a pre-trained run is measured on without fine-tuning."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from bakeoff.config import Config
from bakeoff.recipe import Recipe
from bakeoff.registry import Registry
from bakeoff.runs.run import Run
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task_config import Metric
from bakeoff.tokenizer.tokenizer import Tokenizer


class Measured(NamedTuple):
    """What a run was measured to."""

    scores: dict[str, float]
    """All metrics."""
    lines: list[dict[str, Any]]
    """What each row contributes, in values that JSON can hold."""
    facts: dict[str, Any]
    """What a reader of the scores has to know beside them, such as how texts were read."""


class Anchor(NamedTuple):
    """A value of a metric that needs no network."""

    name: str
    """What reaches it, in words."""
    value: float
    """The value."""
    counts: bool
    """Whether it was learned, by counting the training text."""


class Panel(NamedTuple):
    """A metric by which some runs are compared."""

    title: str
    """What is measured, in words; empty where the measure's name says it."""
    metric: str
    """The metric's key in `Measured.scores`."""
    shown: Metric
    """The metric's name, unit and bounds."""
    lower_is_better: bool
    """Whether less of it is better."""
    labels: tuple[str, ...]
    """The recipes that are compared by it."""
    rows: Mapping[str, Sequence[Vector]]
    """(n,) contributions of the rows to the metric, the same n for all, of each measurement of each recipe."""
    clusters: Sequence[int]
    """(n,) the number of the cluster of each row; empty: all rows are independent."""
    reach: float
    """The widest difference of two contributions; 0: they are never all alike, as losses."""
    anchors: Sequence[Anchor] = ()
    """What is known without any network."""
    files: Mapping[str, str] = {}
    """What was measured on."""
    notes: Sequence[str] = ()
    """Notes to readers of the numbers, in sentences."""


class Measurement(NamedTuple):
    """One measurement of a recipe's run, as it was kept."""

    label: str
    """The recipe's label."""
    scores: Mapping[str, float]
    """See `Measured`."""
    lines: Sequence[Mapping[str, Any]]
    """See `Measured`."""
    facts: Mapping[str, Any]
    """See `Measured`."""


class MeasureConfig(Config):
    """What pre-trained runs are measured on without fine-tuning."""

    kind: str
    """The kind of the measure."""
    name: str = Field(default="", max_length=120)
    """The name in results; absent: its kind in words."""

    in_words: ClassVar[str]
    """The kind in words."""
    reads_text: ClassVar[bool] = False
    """Whether it reads the held-out text of a corpus."""
    in_points: ClassVar[bool] = True
    """Whether any of its metrics is in percent or times 100, and differences in points."""

    @property
    def title(self) -> str:
        """The name in results."""
        return self.name or self.in_words

    @property
    def files(self) -> dict[str, Path]:
        """The files that are read, by key."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if isinstance(value, Path)}

    def refused(self, recipe: Recipe) -> str | None:
        """The reason why runs of a recipe cannot be measured, in words; None: they can."""
        return None

    def check(self) -> None:
        """Read what is measured on, so that mistakes in it come out before any training.

        Raises:
            UserError: a mistake in a file.
        """

    def measure(self, run: Run, text: str | None, device: str) -> Measured:
        """Measure a finished run.

        Args:
            run: the run.
            text: the corpus whose held-out text is read; None: the measure reads none.
            device: auto, cpu, cuda or mps.

        Raises:
            UserError: the run cannot be measured.
        """
        raise NotImplementedError

    def expected_seconds(self, recipe: Recipe, tokenizer: Tokenizer, text: str | None, device: str) -> float:
        """Seconds of `measure`, from a part of its rows and a model with random weights.

        Args:
            recipe: the recipe of the run.
            tokenizer: its tokenizer.
            text: see `measure`.
            device: auto, cpu, cuda or mps.

        Raises:
            UserError: such a run cannot be measured.
        """
        raise NotImplementedError

    def panels(self, measurements: Sequence[Measurement], recipes: Mapping[str, Any], text: str) -> list[Panel]:
        """The comparisons that measurements allow.

        Args:
            measurements: the measurements of all recipes, in the order of recipes and seeds.
            recipes: the complete recipes, by label.
            text: the plan's corpus.
        """
        raise NotImplementedError


MEASURES: Registry[MeasureConfig] = Registry("measure", MeasureConfig)
"""The kinds of measures."""
