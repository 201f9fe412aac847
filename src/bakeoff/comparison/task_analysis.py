"""The statistics of one task, or of all tasks together, as results.json has them."""

from pydantic import Field

from bakeoff.comparison.facts import SameAnswer
from bakeoff.comparison.statistics.breakdown import DifferingRow, LengthScores
from bakeoff.comparison.statistics.factors import FactorAnalysis
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.config import Config


class Analysis(Config):
    """The statistics of one task; see `bakeoff.comparison.statistics.pairs`."""

    task: str
    """The task's name."""
    pretrained: dict[str, Spread]
    """The metric over seeds with pre-trained weights, by recipe."""
    scratch: dict[str, Spread] = Field(default={})
    """The metric over seeds from random weights, by recipe."""
    pairs: list[Difference] = Field(default=[])
    """The differences of every two recipes with pre-trained weights."""
    scratch_pairs: list[Difference] = Field(default=[])
    """The differences of every two recipes from random weights."""
    gains: dict[str, Difference] = Field(default={})
    """The difference between pre-trained and random weights, by recipe."""
    gain_pairs: list[Difference] = Field(default=[])
    """The differences of every two recipes' gains: who gains more from pre-training."""
    trends: dict[str, Difference] = Field(default={})
    """The rise along each order of recipes that the plan gives, by its name; see `comparison.families.trends`."""
    against_baseline: dict[str, Difference] = Field(default={})
    """The difference between pre-trained weights and the best baseline that learns, by recipe; empty without one."""
    by_length: list[LengthScores] = Field(default=[])
    """The scores on short, middling and long test rows; empty where they are few or their lengths not known."""
    differing_rows: list[DifferingRow] = Field(default=[])
    """The test rows on which recipes differ most steadily over seeds, at most a dozen."""
    factors: list[FactorAnalysis] = Field(default=[])
    """What the factors of each grid do."""
    same_answers: list[SameAnswer] = Field(default=[])
    """The models that answer the same to every test row."""

    @property
    def margin(self) -> float | None:
        """The difference from which on the plan takes recipes for unlike; None: it has none, or nothing was tested."""
        return next((pair.margin for pair in self.pairs if pair.margin is not None), None)
