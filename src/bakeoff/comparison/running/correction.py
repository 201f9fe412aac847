"""The second look at a budget in minutes: the first tenth of a recipe's first training."""

from collections.abc import Callable

from bakeoff.config import Config

LOOK = 0.1
"""Share of a recipe's first training after which the planned steps are corrected, once."""
FEWEST_STEPS = 10
"""Steps of the first tenth, at least."""
SLOW_STEPS = 3
"""Steps at the beginning of a training that are slower than later ones, and are not measured."""
TOLERANCE = 0.05
"""Share by which the number of planned steps may be wrong without a correction."""


class Pace(Config):
    """The steps that minutes allow a recipe, and what they follow from."""

    minutes: float
    """The budget in minutes."""
    steps: int
    """Optimizer steps that the budget allows."""
    seconds: float
    """Seconds of a step, by the clock of a machine that does nothing else."""
    work_seconds: float
    """Seconds of a step, by `work_clock`."""

    @classmethod
    def of(cls, minutes: float, seconds: float, work_seconds: float) -> "Pace":
        """The steps that follow from the time of one."""
        steps = max(1, int(minutes * 60 / seconds))
        return cls(minutes=minutes, steps=steps, seconds=seconds, work_seconds=work_seconds)

    def found(self, work_seconds: float) -> "Pace":
        """The pace by the measured work of a step; unchanged where the work is about what was planned."""
        seconds = self.seconds * work_seconds / self.work_seconds
        if abs(self.minutes * 60 / seconds / self.steps - 1) <= TOLERANCE:
            return self
        return Pace.of(self.minutes, seconds, work_seconds)


class Corrected(Exception):
    """A training is to begin anew with another number of steps.

    Args:
        work_seconds: what a step has taken.
    """

    def __init__(self, work_seconds: float) -> None:
        super().__init__(work_seconds)
        self.work_seconds = work_seconds


class FirstTenth:
    """Compares a training's speed with the plan, once, when a tenth of the training is done.

    Args:
        pace: what was planned.
        looked: told where the training goes on as it was planned.
    """

    def __init__(self, pace: Pace, looked: Callable[[], None]) -> None:
        self.pace, self.looked, self.done = pace, looked, False
        self.first: tuple[int, float] | None = None

    def __call__(self, step: int, work_seconds: float) -> None:
        """Look, if it is time to.

        Raises:
            Corrected: the training took so much less or more that it begins anew with another number of steps.
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
