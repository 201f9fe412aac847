"""A training as a value that any process can carry out, its outcome, and the protocol of those who do it."""

from abc import abstractmethod
from collections.abc import Callable, Hashable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from bakeoff.config import Config
from bakeoff.display.progress import Shown

Note = dict[str, Any]
"""What a job says while it runs, in values that JSON can hold: progress for the display, or a word for its queue."""


BEGUN: Note = {"begun": True}
"""The note of workers that a job begins only now, after it has waited for a machine."""


class Outcome(Config):
    """The outcome of a training, or of a part of one; without any value it has simply finished."""

    loss: float | None = None
    """The held-out loss at the end of a trial's part; None: it was not asked for, or the training diverged."""
    seconds: float = 0.0
    """Seconds in optimizer steps so far, of a trial."""
    tokens: int = 0
    """Tokens seen so far, of a trial."""
    diverged: str | None = None
    """The message of a training whose loss is not a number any more; None: it has not diverged."""
    work_seconds: float | None = None
    """Measured seconds of work of a step, if the training has to begin anew with other steps; None: it has not."""


class Job(Config):
    """A training in a directory, complete: whoever sees the files that it names can do it."""

    title: str
    """The training in words, for displays and errors."""
    out: Path
    """Directory of the run. If the training was begun there, the job goes on with it."""
    seed: int
    """Seed of the training's random numbers."""
    device: str
    """Device of the training: auto, cpu, cuda, mps, or one of several: cuda:1."""

    @abstractmethod
    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Train.

        Args:
            progress: whether progress is shown in this process, or a function that gets the notes of it.
            note: a function that takes other notes, for the queue that the job comes from.

        Raises:
            UserError: the training was refused.
            Interrupted: SIGINT or SIGTERM came; a checkpoint is saved.
        """

    def memory(self, device: str) -> int:
        """The memory of the machine, not of its GPU, that the job needs, counted, in bytes; 0: unknown.

        Args:
            device: cpu, cuda or mps.
        """
        return 0

    def message(self) -> Note:
        """The job in values that JSON can hold, for `job_of`."""
        kind = type(self)
        return {"job": f"{kind.__module__}:{kind.__qualname__}", "values": self.model_dump(mode="json")}


def job_of(message: Note, device: str) -> Job:
    """The job of a message, on the device that it gets."""
    module, _, name = message["job"].partition(":")
    kind: type[Job] = getattr(import_module(module), name)
    values = message["values"]
    return kind.parse({**values, "device": device}, values["title"])


class Workers(Protocol):
    """Those who do jobs, as many at once as there are slots; `bakeoff.jobs` says what each member has to do."""

    @property
    def slots(self) -> int:
        """Number of jobs at once."""
        ...

    @property
    def threads(self) -> int:
        """Number of threads of each job."""
        ...

    def begin(self, key: Hashable, job: Job) -> None:
        """Begin a job in a free slot."""
        ...

    def wait(self, noted: Callable[[Hashable, Note], None]) -> tuple[Hashable, Outcome] | None:
        """Wait for the next outcome; notes on the way go to `noted`. None: there are more slots than before."""
        ...
