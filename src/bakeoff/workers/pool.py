"""The parent's side of worker processes, each of which does one job after the other.

They are plain subprocesses, like those that encode text, and do not import the caller's main module. Jobs go to their
standard input as lines of JSON, answers come from their standard output.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Hashable, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.signals import signals_held_back, stop_signals, tell_of_another
from bakeoff.workers.environment import worker_environment

_ASK_AGAIN = 0.3
"""Seconds after which a process that has not stopped is asked again."""


class Heard(NamedTuple):
    """A message of a process about a job."""

    key: Hashable
    """The key of the job."""
    note: dict[str, Any] | None
    """The progress of the job; None: it is done."""
    answer: dict[str, Any]
    """The result of the job once it is done; empty before."""


class _Work(NamedTuple):
    key: Hashable
    title: str
    line: str


class Workers:
    """A pool of worker processes that live from one job to the next.

    When the context ends by an error or a signal, busy processes are asked to save their work, and waited for.

    Args:
        count: number of processes.
        threads: number of threads of each process.
        modules: modules that each process imports when it starts, because imports take seconds.
    """

    def __init__(self, count: int, threads: int, modules: Sequence[str] = ()) -> None:
        self.count, self.threads, self.modules = count, threads, modules
        self.processes: list[subprocess.Popen[str]] = []
        self.attending: list[Thread] = []
        self.busy: set[subprocess.Popen[str]] = set()
        self.waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self.heard: SimpleQueue[Heard | BaseException] = SimpleQueue()
        self.unanswered = 0
        self.stopping, self.lock = False, Lock()

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
        environment = worker_environment(self.threads)
        code = "from bakeoff.workers.serving import serve; serve()"
        command = [sys.executable, "-P", "-c", code, str(self.threads), *self.modules]
        for _ in range(self.count):
            with signals_held_back():  # until the process has its handlers, and is one of the pool
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
                )
                self.processes.append(process)
                thread = Thread(target=self._attend, args=(process,), daemon=True)
                self.attending.append(thread)
                thread.start()

    def give(self, key: Hashable, title: str, call: str, values: dict[str, Any]) -> None:
        """Queue a job for the first process that is free.

        Args:
            key: the key of the job in `hear`.
            title: the name of the job in errors.
            call: the function, as `package.module:name`; it is called with `values` and a function that takes notes of
                progress, and returns the answer.
            values: arguments that JSON can hold.
        """
        self.start()
        self.unanswered += 1
        self.waiting.put(_Work(key, title, json.dumps({"call": call, "values": values})))

    def hear(self, seconds: float | None = None) -> Heard | None:
        """Wait for the next message; None: there was none within `seconds`.

        Raises:
            UserError, DiskFull, Interrupted: the error of a job; a killed process is a UserError.
            RuntimeError: a job failed by a bug.
        """
        try:
            heard = self.heard.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(heard, BaseException):
            self.unanswered -= 1
            raise heard
        if heard.note is None:
            self.unanswered -= 1
        return heard

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

    def _follow(self, process: subprocess.Popen[str], work: _Work) -> bool:
        """Pass on a process's messages until its job is done, and return whether the process lives."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(work.line + "\n")
            process.stdin.flush()
            for line in process.stdout:
                said = json.loads(line) if line.endswith("\n") else {}
                if "note" in said:
                    self.heard.put(Heard(work.key, said["note"], {}))
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


def _answered(work: _Work, said: dict[str, Any]) -> Heard | BaseException:
    """The answer of a job, or its error."""
    if "answer" in said:
        return Heard(work.key, None, said["answer"])
    if "interrupted" in said:
        return Interrupted(said["message"], said["interrupted"])
    if "full" in said:
        return DiskFull(said["full"], "")
    if "error" in said:
        return UserError(said["error"])
    return RuntimeError(f"{work.title}: the process failed:\n{said['failed']}")
