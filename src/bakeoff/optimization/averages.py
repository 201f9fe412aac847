"""Averages of the weights of a training, which are measured and saved in the place of the trained ones."""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.config import Config, PartConfig
from bakeoff.registry import Registry

Factor = Callable[[int], float]
"""The schedule's factor of the learning rate in a step, counted from 0."""


class AverageBaseConfig(PartConfig):
    """The base of averages: a <- a + rate (w - a) after each step, for trained weights w; a begins as they do."""

    kind: str
    """The average's name."""
    share: float
    """A share of the steps."""

    def rate(self, step: int, steps: int) -> float:
        """How far the average moves towards the trained weights after `step` of `steps` steps; 1: all the way."""
        raise NotImplementedError

    def factor(self, step: int, steps: int, of_schedule: Factor) -> float:
        """The factor of the learning rate in a step, counted from 0."""
        return of_schedule(step)

    def refusal(self, rise: float, steps: int | None) -> str | None:
        """The reason why it cannot be taken with a schedule whose rate rises in this share of the steps, if any."""
        return None


class ExponentialAverageConfig(AverageBaseConfig):
    """An exponential mean over the steps so far, the last counting most: decay 1 - 1 / (share * steps).

    0.999 with 0.128 of GPT-BERT's 7,812 steps (Charpentier and Samuel 2024, arXiv:2410.24159).
    """

    kind: Literal["ema"] = "ema"
    """The average's name."""
    share: float = Field(default=0.1, gt=0, lt=1)
    """The share of the steps over which is averaged."""

    def rate(self, step: int, steps: int) -> float:
        """One part in share * steps."""
        return 1 / max(1.0, self.share * steps)


class StochasticAverageConfig(AverageBaseConfig):
    """The even mean of the weights at the ends of cycles of the rate (SWA: Izmailov et al. 2018, arXiv:1803.05407).

    In the last `share` of the steps the learning rate runs through cycles: from the schedule's rate where they begin
    along half a cosine wave to `low` of it. Before the first cycle has ended, the average is the trained weights.
    """

    kind: Literal["swa"] = "swa"
    """The average's name."""
    share: float = Field(default=0.25, gt=0, le=1)
    """The share of the steps, the last ones, in which cycles run: 0.25 of 16 epochs are 4."""
    cycles: int = Field(default=4, gt=0, le=1000)
    """The number of cycles, and of the weights that are averaged."""
    low: float = Field(default=0.1, ge=0, le=1)
    """The rate at the end of a cycle, as a share of that at its beginning."""

    @override
    def refusal(self, rise: float, steps: int | None) -> str | None:
        rounding = 1 / steps if steps else 1e-9
        if self.share + rise <= 1 + rounding:
            return None
        return (
            f"average.share: cycles keep to the rate that the schedule has where they begin, which with {self.share:g} "
            f"is in the warm-up; give {1 - rise:.3g} or less"
        )

    def ends(self, steps: int) -> list[int]:
        """The number of steps after which the cycles begin, and after which each of them ends, without empty ones."""
        begin = steps - max(1, round(self.share * steps))
        return sorted({begin + round((steps - begin) * cycle / self.cycles) for cycle in range(self.cycles + 1)})

    def rate(self, step: int, steps: int) -> float:
        """1 before the first cycle has ended, 1 / k at the end of cycle k, else 0."""
        ends = self.ends(steps)[1:]
        if step <= ends[0]:
            return 1.0
        return 1 / (ends.index(step) + 1) if step in ends else 0.0

    def factor(self, step: int, steps: int, of_schedule: Factor) -> float:
        """The schedule's factor, and in the cycles low + (1 - low) (1 + cos(pi p)) / 2 of that where they begin."""
        ends = self.ends(steps)
        if step < ends[0]:
            return of_schedule(step)
        begin, end = next((low, high) for low, high in pairwise(ends) if step < high)
        wave = (1 + math.cos(math.pi * (step - begin) / max(1, end - begin - 1))) / 2
        return of_schedule(ends[0]) * (self.low + (1 - self.low) * wave)


AVERAGES = Registry("average", AverageBaseConfig, ExponentialAverageConfig, StochasticAverageConfig)
"""The config of every average of weights by its name."""

AverageConfig = Annotated[AverageBaseConfig, AVERAGES]


class AveragedConfig(Config):
    """The setting of the average, common to pre-training and fine-tuning."""

    average: AverageConfig | None = None
    """The weights that are measured and saved are an average of those that are trained: `{kind: ema, share: 0.128}`, a
    running mean, or `{kind: swa}`, the mean of the weights at the ends of cycles of the rate; null: they are those that
    are trained. `running_average: 0.128` of older files is an ema of this share."""

    @model_validator(mode="before")
    @classmethod
    def _take_the_older_key(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        share = values.get("running_average", 0)
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
            raise ValueError(f"running_average: give a share of the steps, from 0 to less than 1, not {share!r}")
        return in_todays_form(values)


def in_todays_form(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with `average` in the place of the older key `running_average`, which wins where both are there."""
    values = dict(values)
    if "running_average" in values:
        share = values.pop("running_average")
        values["average"] = {"kind": "ema", "share": share} if share != 0 or isinstance(share, bool) else None
    return values
