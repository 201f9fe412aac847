"""Worker processes of this machine, each of which does one job after the other; this is the parent's side."""

import time
from collections.abc import Callable, Hashable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import NamedTuple, Self

from bakeoff.errors import UserError
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.jobs.worker_process import WorkerProcess, outcome_of
from bakeoff.signals import signals_held_back, stop_signals, tell_of_another

_ASK_AGAIN = 0.3
"""Seconds after which a process that has not stopped is asked again."""


class _Given(NamedTuple):
    """A job that a process does next."""

    key: Hashable
    title: str
    message: Note


class Processes:
    """Worker processes of this machine that live from one job to the next, see `job.Workers`.

    When the context ends by an error or a signal, busy processes are asked to save their work, and waited for.

    Args:
        devices: for each process the device of its jobs.
        threads: number of threads of each process.
    """

    def __init__(self, devices: Sequence[str], threads: int) -> None:
        self.devices, self.threads = list(devices), threads
        self.processes: list[WorkerProcess] = []
        self.attending: list[Thread] = []
        self.busy: set[WorkerProcess] = set()
        self.waiting: SimpleQueue[_Given | None] = SimpleQueue()
        self.heard: SimpleQueue[tuple[Hashable, Note | Outcome] | BaseException] = SimpleQueue()
        self.stopping, self.lock = False, Lock()

    @property
    def slots(self) -> int:
        """Number of processes."""
        return len(self.devices)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self.stopping = True
        try:
            with stop_signals():  # a second signal does not end the waiting for checkpoints, but for a late Ctrl-C
                if self.busy and kind is KeyboardInterrupt:
                    tell_of_another()
                while self.busy:
                    for process in self.busy.copy():  # a training before its first step ignores it
                        process.ask_to_stop()
                    time.sleep(_ASK_AGAIN)
        finally:
            for process in self.processes:
                process.kill()  # idle, or its work is not wanted
            for _ in self.attending:
                self.waiting.put(None)
            for thread in self.attending:
                thread.join()
            for process in self.processes:
                process.end()

    def start(self) -> None:
        """Start the processes unless they run; called early, it saves the seconds that they need to start."""
        if self.processes:
            return
        for device in self.devices:
            with signals_held_back():  # until the process has its handlers, and is one of the pool
                process = WorkerProcess(device, self.threads)
                self.processes.append(process)
                thread = Thread(target=self._attend, args=(process,), daemon=True)
                self.attending.append(thread)
                thread.start()

    def begin(self, key: Hashable, job: Job) -> None:
        """Give a job to the first process that is free."""
        self.start()
        self.waiting.put(_Given(key, job.title, job.message()))

    def wait(self, noted: Callable[[Hashable, Note], None]) -> tuple[Hashable, Outcome]:
        """Wait until a job is done; returns its key and its outcome.

        Raises:
            UserError, DiskFull, Interrupted: the error of a job; a killed process is a UserError.
            RuntimeError: a job failed by a bug.
        """
        while True:
            heard = self.heard.get()
            if isinstance(heard, BaseException):
                raise heard
            key, said = heard
            if isinstance(said, Outcome):
                return key, said
            noted(key, said)

    def _attend(self, process: WorkerProcess) -> None:
        while (work := self.waiting.get()) is not None:
            with self.lock:
                if self.stopping:
                    return
                self.busy.add(process)
            try:
                alive = self._follow(process, work)
            finally:
                self.busy.discard(process)
            if not alive:
                return

    def _follow(self, process: WorkerProcess, work: _Given) -> bool:
        """Pass on a process's messages until its job is done, and return whether the process lives."""
        said = process.do(work.message, lambda note: self.heard.put((work.key, note)))
        if said is None:
            self.heard.put(
                UserError(
                    f"{work.title}: its process was killed; is the machine out of memory? Give the same command again, "
                    "or fewer --jobs"
                )
            )
            return False
        try:
            self.heard.put((work.key, outcome_of(said, work.title)))
        except Exception as error:  # which the one that waits for the outcome raises
            self.heard.put(error)
        return True
