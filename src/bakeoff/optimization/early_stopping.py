"""Early stopping: a training that ends where its held-out loss has stopped falling (Prechelt 1998)."""

import math
from collections.abc import Sequence

from pydantic import Field, PositiveInt

from bakeoff.config import Config


class EarlyStopping(Config):
    """A training that ends after a number of validations in a row without a better held-out loss.

    The losses are those of `training.validations`, the one before the first step left out. The learning rate's schedule
    stays that of the whole budget.
    """

    patience: PositiveInt
    """The training ends when the held-out loss has not become better in so many validations in a row."""
    threshold: float = Field(default=0.0, ge=0, lt=1)
    """A loss is better when it is lower than the best by more than this share of it."""
    keep_best: bool = False
    """The run's weights are those of the best held-out loss, also where the training goes to its end; false: those of
    its last step."""

    def best(self, losses: Sequence[float]) -> int | None:
        """The index of the best loss among those that have been measured; None: there is none yet."""
        best, best_index = math.inf, None
        for index, loss in enumerate(losses):
            if best_index is None or loss < best - self.threshold * abs(best):
                best, best_index = loss, index
        return best_index

    def stops(self, losses: Sequence[float]) -> bool:
        """Whether the training ends after these losses."""
        best_index = self.best(losses)
        return best_index is not None and len(losses) - 1 - best_index >= self.patience
