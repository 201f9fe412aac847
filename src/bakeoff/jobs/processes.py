"""Worker processes of this machine, each of which does one job after the other; this is the parent's side.

They are plain subprocesses, which do not import the caller's main module. Jobs go to their standard input as lines of
JSON, notes and outcomes come from their standard output.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import NamedTuple, Self

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.signals import signals_held_back, stop_signals, tell_of_another

_ASK_AGAIN = 0.3
"""Seconds after which a process that has not stopped is asked again."""


class _Given(NamedTuple):
    """A job that a process does next."""

    key: Hashable
    title: str
    line: str


class Processes:
    """Worker processes of this machine that live from one job to the next, see `job.Workers`.

    When the context ends by an error or a signal, busy processes are asked to save their work, and waited for.

    Args:
        devices: for each process the device of its jobs.
        threads: number of threads of each process.
    """

    def __init__(self, devices: Sequence[str], threads: int) -> None:
        self.devices, self.threads = list(devices), threads
        self.processes: list[subprocess.Popen[str]] = []
        self.attending: list[Thread] = []
        self.busy: set[subprocess.Popen[str]] = set()
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
                        process.send_signal(signal.SIGTERM)
                    time.sleep(_ASK_AGAIN)
        finally:
            for process in self.processes:
                process.kill()  # idle, or its work is not wanted
            for _ in self.attending:
                self.waiting.put(None)
            for thread in self.attending:
                thread.join()
            for process in self.processes:
                process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        with contextlib.suppress(OSError):
                            stream.close()

    def start(self) -> None:
        """Start the processes unless they run; called early, it saves the seconds that they need to start."""
        if self.processes:
            return
        environment = _environment(self.threads)
        code = "from bakeoff.jobs.serving import serve; serve()"
        for device in self.devices:
            command = [sys.executable, "-P", "-c", code, str(self.threads), device]
            with signals_held_back():  # until the process has its handlers, and is one of the pool
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
                )
                self.processes.append(process)
                thread = Thread(target=self._attend, args=(process,), daemon=True)
                self.attending.append(thread)
                thread.start()

    def begin(self, key: Hashable, job: Job) -> None:
        """Give a job to the first process that is free."""
        self.start()
        self.waiting.put(_Given(key, job.title, json.dumps(job.message())))

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

    def _attend(self, process: subprocess.Popen[str]) -> None:
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

    def _follow(self, process: subprocess.Popen[str], work: _Given) -> bool:
        """Pass on a process's messages until its job is done, and return whether the process lives."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(work.line + "\n")
            process.stdin.flush()
            for line in process.stdout:
                said = json.loads(line) if line.endswith("\n") else {}
                if "note" in said:
                    self.heard.put((work.key, said["note"]))
                elif said:
                    self.heard.put(_answered(work, said))
                    return True
        except (BrokenPipeError, ValueError):  # the process was killed
            pass
        self.heard.put(
            UserError(
                f"{work.title}: its process was killed; is the machine out of memory? Give the same command again, or "
                "fewer --jobs"
            )
        )
        return False


def _answered(work: _Given, said: Note) -> tuple[Hashable, Outcome] | BaseException:
    """The outcome of a job, or its error."""
    if "outcome" in said:
        return work.key, Outcome.parse(said["outcome"], work.title)
    if "interrupted" in said:
        return Interrupted(said["message"], said["interrupted"])
    if "full" in said:
        return DiskFull(said["full"], "")
    if "error" in said:
        return UserError(said["error"])
    return RuntimeError(f"{work.title}: the process failed:\n{said['failed']}")


def _environment(threads: int) -> dict[str, str]:
    """The variables of this process, with `threads` threads for each numeric library, and a path to the package."""
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # The package may be on a path that was added in this process.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return environment
