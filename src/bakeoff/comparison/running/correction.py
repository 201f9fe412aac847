"""The second look at a budget in minutes: the first tenth of a recipe's first training."""

from collections.abc import Callable

from bakeoff.config import Config

LOOK = 0.1
"""Share of its first training behind which a recipe's steps are corrected once."""
FEWEST_STEPS = 10
"""Steps that this takes at least."""
SLOW_STEPS = 3
"""The first ones, which take longer than those that follow."""
TOLERANCE = 0.05
"""What was measured before may be wrong by so much."""


class Pace(Config):
    """The steps that minutes allow a recipe, and what they follow from."""

    minutes: float
    """The budget."""
    steps: int
    """The steps."""
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
        """The same where a step has taken so much work; itself where that is about what was measured before."""
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
    """Told how far a training is, it looks once.

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
