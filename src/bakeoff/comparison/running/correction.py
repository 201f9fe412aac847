"""The correction of a budget in minutes, from the speed in the first tenth of a recipe's first training."""

from collections.abc import Callable

from bakeoff.config import Config

LOOK = 0.1
"""Share of a recipe's first training after which the planned steps are corrected, once."""
FEWEST_STEPS = 10
"""Fewest steps over which the speed is measured, even where a tenth of the training is shorter."""
SLOW_STEPS = 3
"""Number of slow steps at the beginning of a training, which are not measured."""
TOLERANCE = 0.05
"""Relative error of the planned number of steps that is left uncorrected."""


class Pace(Config):
    """The steps that a budget in minutes allows a recipe, and the times that they follow from."""

    minutes: float
    """The budget in minutes."""
    steps: int
    """Optimizer steps that the budget allows."""
    seconds: float
    """Seconds of a step, by the clock of a machine that does nothing else."""
    work_seconds: float
    """Seconds of work of a step, by `work_clock`."""

    @classmethod
    def of(cls, minutes: float, seconds: float, work_seconds: float) -> "Pace":
        """The pace of a recipe whose steps take so many seconds; at least one step."""
        steps = max(1, int(minutes * 60 / seconds))
        return cls(minutes=minutes, steps=steps, seconds=seconds, work_seconds=work_seconds)

    def found(self, work_seconds: float) -> "Pace":
        """The pace by the measured work of a step; unchanged where the planned steps are within `TOLERANCE`."""
        seconds = self.seconds * work_seconds / self.work_seconds
        if abs(self.minutes * 60 / seconds / self.steps - 1) <= TOLERANCE:
            return self
        return Pace.of(self.minutes, seconds, work_seconds)


class Corrected(Exception):
    """A training is to begin anew with another number of steps.

    Args:
        work_seconds: measured seconds of work of a step.
    """

    def __init__(self, work_seconds: float) -> None:
        super().__init__(work_seconds)
        self.work_seconds = work_seconds


class FirstTenth:
    """Compares a training's speed with the plan, once, when a tenth of the training is done.

    Args:
        pace: the planned pace.
        looked: a function that is called once, when the training goes on as it was planned.
    """

    def __init__(self, pace: Pace, looked: Callable[[], None]) -> None:
        self.pace, self.looked, self.done = pace, looked, False
        self.first: tuple[int, float] | None = None

    def __call__(self, step: int, work_seconds: float) -> None:
        """Compare the speed once enough steps are done; do nothing before and after.

        Raises:
            Corrected: the speed is so far from the plan that the training begins anew with another number of steps.
        """
        if self.done or step < SLOW_STEPS:
            return
        self.first = self.first or (step, work_seconds)
        first, before = self.first
        if step - first < max(LOOK * self.pace.steps, FEWEST_STEPS):
            return
        self.done = True
        work = (work_seconds - before) / (step - first)
        if self.pace.found(work).steps != self.pace.steps:
            raise Corrected(work)
        self.looked()
