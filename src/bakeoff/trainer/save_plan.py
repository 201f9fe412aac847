"""When a training is saved, and what keeps its weights on the way."""

import math
from typing import NamedTuple, Protocol

from bakeoff.trainer.position import Position

FIRST_CHECKPOINT = 60.0
"""Seconds until a training's first checkpoint; a training that is killed early would else begin at its start."""


class SavePlan(NamedTuple):
    """The times at which a training is saved, in seconds since it was saved last."""

    between: float
    """The longest time between checkpoints; the first one comes after `FIRST_CHECKPOINT`, if that is sooner."""
    after_evaluation: float = math.inf
    """The time from which an evaluation is followed by a checkpoint."""
    at_end: bool = False
    """Whether the last step may be followed by a checkpoint; else what is made of the weights replaces it."""

    def due(self, seconds: float, first: bool, evaluated: bool) -> bool:
        """Whether a checkpoint is due.

        Args:
            seconds: time since the last one, or since the training began or was resumed.
            first: whether there is none yet.
            evaluated: whether this step is followed by an evaluation.
        """
        between = min(self.between, FIRST_CHECKPOINT) if first else self.between
        return seconds > between or (evaluated and seconds >= self.after_evaluation)


class Keeper(Protocol):
    """Keeps the weights as they are after some steps."""

    def due(self, step: int, before: int, after: int) -> bool:
        """Whether weights are to be kept after a step that has read the tokens from `before` to `after`."""
        ...

    def keep(self, position: Position) -> None:
        """Keep the present weights, those of the running average where there is one."""
        ...
