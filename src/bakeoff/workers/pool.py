"""Processes that take one piece of work after the other, seen from the process that has started them.

They are plain subprocesses, as those that encode text: they import no main module of the caller. What they are asked
goes to their standard input as lines of JSON, and what they answer comes from their standard output.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Hashable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.signals import STOPPING
from bakeoff.workers.environment import worker_environment

_ASK_AGAIN = 0.3
"""Seconds after which a process that has not stopped yet is asked to once more."""


class Heard(NamedTuple):
    """What a process says of a piece of work."""

    key: Hashable
    """Which one."""
    note: dict[str, Any] | None
    """How far it is; None: it is done."""
    answer: dict[str, Any]
    """What came of it, once it is done."""


class _Work(NamedTuple):
    key: Hashable
    title: str
    line: str


class Workers:
    """So many processes, each with so many threads, which stay alive from one piece of work to the next.

    Left with an error or behind a signal, it asks those that are at work to save what they have, and waits for them.

    Args:
        count: how many processes.
        threads: of each.
        modules: imported by each as it starts, because that takes seconds.
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
            while self.busy:
                for process in self.busy.copy():  # one that has not begun its steps yet does not hear it
                    process.send_signal(signal.SIGTERM)
                time.sleep(_ASK_AGAIN)
        finally:  # after a second signal not even checkpoints are waited for
            for process in self.processes:
                process.kill()  # each is idle, or nobody wants what it makes
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
        """Start them, unless they run: they are ready once there is work, if this is called seconds earlier."""
        if self.processes:
            return
        environment = worker_environment(self.threads)
        code = "from bakeoff.workers.serving import serve; serve()"
        command = [sys.executable, "-P", "-c", code, str(self.threads), *self.modules]
        for _ in range(self.count):
            with _signals_held_back():  # until it knows what to do with them
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
                )
            self.processes.append(process)
            thread = Thread(target=self._attend, args=(process,), daemon=True)
            self.attending.append(thread)
            thread.start()

    def give(self, key: Hashable, title: str, call: str, values: dict[str, Any]) -> None:
        """Have one of them do a piece of work, as soon as it is free.

        Args:
            key: what `hear` calls it.
            title: what errors call it.
            call: the function, `package.module:name`, which is called with `values` and a function that takes notes,
                and returns the answer.
            values: what may stand in JSON.
        """
        self.start()
        self.unanswered += 1
        self.waiting.put(_Work(key, title, json.dumps({"call": call, "values": values})))

    def hear(self, seconds: float | None = None) -> Heard | None:
        """Wait for what is said next; None: nothing was, in so many seconds.

        Raises:
            UserError, DiskFull, Interrupted: what a process has run into; or it was killed.
            RuntimeError: a mistake of ours.
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
        """Pass on what a process says of a piece of work until that is done; whether the process lives."""
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
        except (BrokenPipeError, ValueError):  # the streams of one that was killed
            pass
        self.heard.put(
            UserError(
                f"{work.title}: its process was killed; is the machine out of memory? Give the same command again, or "
                "fewer --jobs"
            )
        )
        return False


def _answered(work: _Work, said: dict[str, Any]) -> Heard | BaseException:
    """The answer, or the error that stands for it."""
    if "answer" in said:
        return Heard(work.key, None, said["answer"])
    if "interrupted" in said:
        return Interrupted(said["message"], said["interrupted"])
    if "full" in said:
        return DiskFull(said["full"], "")
    if "error" in said:
        return UserError(said["error"])
    return RuntimeError(f"{work.title}: the process failed:\n{said['failed']}")


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Within it the signals that stop wait; a process that is started inherits that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
