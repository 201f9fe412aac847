"""The runner: gives the jobs of a queue to workers, and shows their progress."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, Protocol

from bakeoff.display.board import Board
from bakeoff.display.progress import Remarked, Shown, duration
from bakeoff.jobs.job import BEGUN, Job, Note, Outcome, Workers
from bakeoff.jobs.remaining import Load, Remaining

Say = Callable[[str], None]
"""A function that prints a line of progress."""

CarryOut = Callable[[Job, Shown, Callable[[Note], None]], Outcome]
"""A function that does a job in this process, as `Job.carry_out` does."""


class Queue(Protocol):
    """The jobs of a search or of a comparison."""

    def next(self) -> tuple[Hashable, Job] | None:
        """The job that begins now, with its key; None: none can begin before another one has ended."""
        ...

    def load(self, key: Hashable) -> Load:
        """What a job that waits or runs will take."""
        ...

    def ahead(self) -> Iterable[Load]:
        """The loads of the jobs that have not begun, as far as they are known."""
        ...

    def noted(self, key: Hashable, note: Note) -> None:
        """Take a note of a running job."""
        ...

    def ended(self, key: Hashable, outcome: Outcome) -> None:
        """Take the outcome of a job."""
        ...


class InThisProcess:
    """One job after the other, in this process.

    Args:
        carry_out: the function that does a job.
        shown: whether progress is shown.
    """

    slots = 1

    def __init__(self, carry_out: CarryOut, shown: bool) -> None:
        self.carry_out = carry_out
        self.shown: Shown = Remarked() if shown else False
        self.waiting: list[tuple[Hashable, Job]] = []

    @property
    def threads(self) -> int:
        """Torch's number of threads."""
        import torch

        return torch.get_num_threads()

    def begin(self, key: Hashable, job: Job) -> None:
        """Keep the job until `wait`."""
        self.waiting.append((key, job))

    def wait(self, noted: Callable[[Hashable, Note], None]) -> tuple[Hashable, Outcome]:
        """Do the job."""
        key, job = self.waiting.pop()
        return key, self.carry_out(job, self.shown, lambda note: noted(key, note))


class Runner:
    """Gives jobs to workers, and shows their progress.

    Args:
        workers: those who do jobs side by side; None: one job after the other, in this process.
        carry_out: the function that does a job in this process.
        say: a function that prints a line; None: nothing is shown.
        what: the noun for one job in the display, in the singular, such as `trial`.
    """

    def __init__(self, workers: Workers | None, carry_out: CarryOut, say: Say | None, what: str) -> None:
        self.workers: Workers = workers or InThisProcess(carry_out, say is not None)
        self.side_by_side, self.print, self.what = workers is not None, say, what
        self.board: Board | None = None
        self.remaining = Remaining()

    def say(self, line: str) -> None:
        """Print a line, with the bars, if there are any, out of its way."""
        if self.board is not None:
            self.board.say(line)
        elif self.print is not None:
            self.print(line)

    def run(self, queue: Queue, total: int) -> None:
        """Do the jobs of a queue until it has no more.

        Args:
            queue: the queue.
            total: the number of its jobs, for the display.

        Raises:
            UserError, Interrupted, DiskFull: of a job; those that run besides are stopped when the workers are left.
        """
        running: dict[Hashable, Job] = {}
        # One job after the other has the display of a single training.
        left = partial(self._left, queue)
        with Board(self.print if self.side_by_side else None, total, self.what, left) as board:
            self.board = board if self.side_by_side else None

            def noted(key: Hashable, note: dict[str, Any]) -> None:
                if note == BEGUN:
                    self.remaining.begin(key, queue.load(key))
                    return
                if "done" in note:
                    self.remaining.hear(key, note["done"], note["total"])
                board.hear(key, note)
                queue.noted(key, note)

            try:
                while True:
                    while len(running) < self.workers.slots and (entry := queue.next()) is not None:
                        key, job = entry
                        running[key] = job
                        board.begin(key, job.title)
                        self.remaining.begin(key, queue.load(key))
                        self.workers.begin(key, job)
                    if not running:
                        return
                    ended = self.workers.wait(noted)
                    if ended is None:
                        continue
                    key, outcome = ended
                    del running[key]
                    over = outcome.work_seconds is None
                    self.remaining.end(key, over)
                    board.end(key, over)
                    queue.ended(key, outcome)
                    if not self.side_by_side and board.done < total and board.pace.due():
                        self.say(board.whole())
            finally:
                self.board = None

    def _left(self, queue: Queue) -> str:
        """The time that is left for all jobs of a queue, in words; empty: unknown."""
        estimate = self.remaining.seconds(queue.ahead(), self.workers.slots)
        if estimate is None:
            return ""
        seconds, whole = estimate
        return f"{'about' if whole else 'more than'} {duration(seconds)} left for all"
