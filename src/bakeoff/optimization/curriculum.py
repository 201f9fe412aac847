"""Curricula: rows and weights that are others in the first part of a training (Devlin et al. 2019, appendix A.2)."""

from itertools import pairwise

from pydantic import Field

from bakeoff.config import Config


class StageConfig(Config):
    """A part of a training, from the end of the stage before it, or the first step, on."""

    until: float = Field(gt=0, lt=1)
    """Share of the steps at which it ends; behind the last stage, rows and weights are the recipe's own."""
    length: int | None = Field(default=None, gt=2)
    """In place of `input.length`."""
    weights: dict[str, float] = Field(default={})
    """In place of the `weight` of some objectives, by their kind; 0: the objective is not trained for now."""


def stage_at(curriculum: list[StageConfig], step: int, steps: int) -> int:
    """The number of the stage that a step, counted from 0, belongs to; that of stages for what follows them all."""
    return sum(step >= round(stage.until * steps) for stage in curriculum)


def shares(curriculum: list[StageConfig]) -> list[float]:
    """The share of the steps of each stage, and of what follows them all."""
    ends = [0.0, *(stage.until for stage in curriculum), 1.0]
    return [end - begin for begin, end in pairwise(ends)]
