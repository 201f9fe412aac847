"""The time that is left for all jobs of a queue, from the jobs that are done and those that run."""

import time
from collections.abc import Callable, Hashable, Iterable
from statistics import fmean
from typing import NamedTuple

LEAST_SHARE = 0.05
"""Share of a running job after which its speed counts; before, a slow start would be taken for it."""


class Load(NamedTuple):
    """What a job will take, as far as it is known before."""

    what: str
    """The kind of job, such as pre-training."""
    of: str
    """What it is done with, such as the label of a recipe; jobs of equal kind and equal `of` take alike."""
    size: float = 1.0
    """Its length in any unit that is the same for all jobs of its kind, such as steps."""


class _Running:
    """A running job.

    Args:
        load: its load.
        now: the time at which it began.
    """

    def __init__(self, load: Load, now: float) -> None:
        self.load, self.began, self.first, self.share = load, now, 0.0, 0.0
        self.heard = now

    def hear(self, share: float, now: float) -> None:
        """Take the share of the job that is done; the first of a job that goes on was not done now."""
        if self.share == 0.0 and share > LEAST_SHARE:
            self.began, self.first = now, share
        self.share, self.heard = share, now

    def seconds(self) -> float | None:
        """Seconds of the whole job by its speed so far; None: it is too early to tell."""
        gone = self.share - self.first
        return (self.heard - self.began) / gone if gone >= LEAST_SHARE else None


class Remaining:
    """Estimates the time that is left.

    Args:
        clock: a function that gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running: dict[Hashable, _Running] = {}
        self.rates: dict[tuple[str, str], list[float]] = {}
        """Seconds for each unit of size of the jobs that are done, by kind."""

    def begin(self, key: Hashable, load: Load) -> None:
        """A job begins."""
        self.running[key] = _Running(load, self.clock())

    def hear(self, key: Hashable, done: float, total: float) -> None:
        """Take a note of a running job: so many steps of so many are done."""
        if key in self.running and total:
            self.running[key].hear(done / total, self.clock())

    def end(self, key: Hashable, over: bool = True) -> None:
        """A job has ended; one that is not `over` will begin again, and says nothing of others."""
        job = self.running.pop(key, None)
        if job is None or not over or job.load.size <= 0:
            return
        seconds = (self.clock() - job.began) / (1 - job.first) if job.first < 1 else 0.0
        self.rates.setdefault(job.load[:2], []).append(seconds / job.load.size)

    def seconds(self, ahead: Iterable[Load], slots: int) -> tuple[float, bool] | None:
        """Seconds until all jobs are done, and whether all of them are counted: of some kinds none may have run yet.

        Args:
            ahead: the jobs that have not begun.
            slots: number of jobs at once.

        Returns:
            None: nothing is known yet.
        """
        rates = {kind: fmean(each) for kind, each in self.rates.items()}
        for job in self.running.values():
            if (whole := job.seconds()) is not None and job.load[:2] not in rates and job.load.size > 0:
                rates[job.load[:2]] = whole / job.load.size
        left = [self._left(job, rates) for job in self.running.values()]
        waiting = [_expected(load, rates) for load in ahead]
        known = [each for each in (*left, *waiting) if each is not None]
        if not known:
            return None
        return max(sum(known) / max(1, min(slots, len(known))), *known, 0.0), len(known) == len(left) + len(waiting)

    def _left(self, job: _Running, rates: dict[tuple[str, str], float]) -> float | None:
        whole = job.seconds() or _expected(job.load, rates)
        return None if whole is None else max(0.0, whole * (1 - job.share) - (self.clock() - job.heard))


def _expected(load: Load, rates: dict[tuple[str, str], float]) -> float | None:
    """Seconds of a job that has not begun, by others of its kind; None: there are none."""
    if load[:2] in rates:
        return rates[load[:2]] * load.size
    alike = [rate for (what, _), rate in rates.items() if what == load.what]
    return fmean(alike) * load.size if alike else None
