"""Curricula: other rows, weights and settings in the first part of a training (Devlin et al. 2019, appendix A.2)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field

from bakeoff.config import Config


class StageConfig(Config):
    """A part of a training that begins at the end of the stage before it, or at the first step."""

    until: float = Field(gt=0, lt=1)
    """Share of the steps at which the stage ends; after the last stage, rows and weights are the recipe's own."""
    length: int | None = Field(default=None, gt=2)
    """Length of the stage's rows, in place of `input.length`."""
    batch_factor: float = Field(default=1.0, gt=0)
    """Rows of the batch as a multiple of `training.batch`; with shorter rows a multiple keeps the number of tokens."""
    weights: dict[str, float] = Field(default={})
    """Weights of some objectives in the stage, by kind, in place of their `weight`; 0: the objective is not trained in
    the stage, and leaves the text alone."""
    settings: dict[str, dict[str, Any]] = Field(default={})
    """Other settings of some objectives in the stage, by kind, such as `{mlm: {rate: 0.4}}`: of those that say which
    tokens are hidden or predicted, and how."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the model in the stage, and of each part of it whose own dropout is not 0."""


def stage_at(curriculum: list[StageConfig], step: int, steps: int) -> int:
    """The number of the stage of a step, counted from 0; after the last stage, the number of stages."""
    return sum(step >= round(stage.until * steps) for stage in curriculum)


def shares(curriculum: list[StageConfig]) -> list[float]:
    """The share of the steps of each stage, and of the part that follows them all."""
    ends = [0.0, *(stage.until for stage in curriculum), 1.0]
    return [end - begin for begin, end in pairwise(ends)]


def middles(curriculum: list[StageConfig]) -> list[float]:
    """The share of the steps that is done in the middle of each stage, and of the part that follows them all."""
    ends = [0.0, *(stage.until for stage in curriculum), 1.0]
    return [(begin + end) / 2 for begin, end in pairwise(ends)]


def curriculum_refusals(
    stages: Sequence[StageConfig], weights: Mapping[str, float], length: int, continues: bool
) -> list[str]:
    """The reasons why a curriculum cannot be trained; empty where it can.

    Args:
        stages: the curriculum.
        weights: the objectives by kind, with the weights that they have after the last stage.
        length: the recipe's length of rows.
        continues: whether rows continue each other from step to step.
    """
    reasons, kinds = [], list(weights)
    if not any(weights.values()):
        reasons.append("objective: all have weight 0 after the last stage, so that nothing is left to be trained")
    ends = [stage.until for stage in stages]
    if ends != sorted(set(ends)):
        reasons.append("training.curriculum: give the stages in their order, each 'until' above the one before")
    if stages and stages[-1] == StageConfig(until=stages[-1].until):
        last = len(stages) - 1
        reasons.append(
            f"training.curriculum.{last}: the stage is as what follows it; give it length, batch_factor, "
            "weights, settings or dropout, or leave it out"
        )
    for index, stage in enumerate(stages):
        where = f"training.curriculum.{index}"
        reasons += [
            f"{where}.weights: '{kind}' is none of the recipe's objectives, {', '.join(kinds)}"
            for kind in stage.weights
            if kind not in kinds
        ]
        reasons += [
            f"{where}.settings: '{kind}' is none of the recipe's objectives, {', '.join(kinds)}"
            for kind in stage.settings
            if kind not in kinds
        ]
        reasons += [f"{where}.weights.{kind}: less than 0" for kind, weight in stage.weights.items() if weight < 0]
        if not any(stage.weights.get(kind, weight) > 0 for kind, weight in weights.items()):
            reasons.append(f"{where}.weights: no objective is left to be trained")
        if stage.length is not None and continues:
            reasons.append(f"{where}.length: rows that continue each other keep their length")
        elif stage.length is not None and stage.length > length:
            reasons.append(
                f"{where}.length: {stage.length} is more than input.length, {length}; shorten it, or set "
                "training.curriculum to []"
            )
    return reasons
