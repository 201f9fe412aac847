"""Early stopping: a training that ends where its held-out loss has stopped falling (Prechelt 1998), or is reached."""

import math
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from bakeoff.config import Config

LossUnit = Literal["nats", "bits per byte"]
"""The units of a held-out loss: nats a target, or bits a byte of text."""


class EarlyStopping(Config):
    """A training that ends after a number of validations in a row without a better held-out loss, or at a stated one.

    The losses are those of `training.validations`, the one before the first step left out. The learning rate's schedule
    stays that of the whole budget.
    """

    patience: PositiveInt | None = None
    """The training ends when the held-out loss has not become better in so many validations in a row; absent: never."""
    target: float | None = None
    """The training ends at the first validation whose held-out loss is no higher; absent: there is none."""
    target_unit: LossUnit = "nats"
    """The unit of the target: nats a target, or bits a byte of text, which compare whatever the tokenizer, and which
    objectives have that predict every token."""
    threshold: float = Field(default=0.0, ge=0, lt=1)
    """A loss is better when it is lower than the best by more than this share of it."""
    keep_best: bool = False
    """The run's weights are those of the best held-out loss, also where the training goes to its end; false: those of
    its last step."""

    @model_validator(mode="after")
    def _some_end(self) -> Self:
        if self.patience is None and self.target is None:
            raise ValueError("give patience, or a target")
        if self.target is None and self.target_unit != "nats":
            raise ValueError("target_unit: would have no effect: there is no target")
        return self

    def best(self, losses: Sequence[float]) -> int | None:
        """The index of the best loss among those that have been measured; None: there is none yet."""
        best, best_index = math.inf, None
        for index, loss in enumerate(losses):
            if best_index is None or loss < best - self.threshold * abs(best):
                best, best_index = loss, index
        return best_index

    def stops(self, losses: Sequence[float], measured: Sequence[float] | None = None) -> bool:
        """Whether the training ends after these losses.

        Args:
            losses: the held-out losses so far.
            measured: what is compared with the target, in its unit; None: the losses.
        """
        if self.reaches(losses if measured is None else measured):
            return True
        best_index = self.best(losses)
        if best_index is None or self.patience is None:
            return False
        return len(losses) - 1 - best_index >= self.patience

    def reaches(self, measured: Sequence[float]) -> bool:
        """Whether the last of these losses, in the target's unit, is the target, or lower."""
        return self.target is not None and bool(measured) and measured[-1] <= self.target


def unit_refusals(stopping: EarlyStopping | None, without: Sequence[str]) -> list[str]:
    """The reasons why a target cannot be in its unit.

    Args:
        stopping: the early stopping of a recipe; None: it has none.
        without: the kinds of its objectives that do not predict every token.
    """
    if stopping is None or stopping.target_unit == "nats" or not without:
        return []
    why = f"{without[0]} does not predict every token, and has no bits per byte"
    return [f"training.early_stopping.target_unit: {why}"]
