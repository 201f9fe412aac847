"""Stages of trials, in turn in this process or side by side in others.

Workers are plain subprocesses, as those that encode text: they import no main module of the caller. Each has its share
of the cores, takes one stage after the other from its standard input, and answers on its standard output.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, Self

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.training.signals import STOPPING
from bakeoff.tuning.engine import Bakeoff, Engine, Outcome, Stage

_ASK_AGAIN = 0.3
"""Seconds after which a worker that has not stopped yet is asked to once more."""


class Runner(Protocol):
    """What trains stages."""

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, Outcome]]:
        """The place and the outcome of each stage as soon as it is known.

        Raises:
            Interrupted, KeyboardInterrupt: it was stopped; what was under way is saved.
        """


class InTurn:
    """One stage after the other."""

    def __init__(self, engine: Engine, progress: bool) -> None:
        self.engine, self.progress = engine, progress

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`."""
        for place, stage in enumerate(stages):
            yield place, self.engine.train(stage, self.progress)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SideBySide:
    """So many processes, each with its share of the cores.

    Args:
        jobs: how many.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self.processes: list[subprocess.Popen[str]] = []
        self.busy: set[subprocess.Popen[str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()  # each is idle, or nobody wants what it makes
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def run(self, stages: Sequence[Stage]) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`. After an error or a signal the others save what they have, and leave."""
        if stages and not self.processes:
            self._start()
        pool = ThreadPoolExecutor(self.jobs)
        places = {pool.submit(self._ask, stage): place for place, stage in enumerate(stages)}
        try:
            for future in as_completed(places):
                yield places[future], future.result()
        finally:
            for future in places:
                future.cancel()
            try:
                while any(future.running() for future in places):
                    for process in self.busy.copy():  # one that has not begun its steps yet does not hear it
                        process.send_signal(signal.SIGTERM)
                    time.sleep(_ASK_AGAIN)
            finally:  # after a second signal not even checkpoints are waited for
                for process in self.busy.copy():
                    process.kill()
                pool.shutdown(wait=True)

    def _start(self) -> None:
        threads = str(max(1, cores() // self.jobs))
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        # The package may be on a path that only this process knows.
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-P", "-c", "from bakeoff.tuning.workers import serve; serve()"]
        for _ in range(self.jobs):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
            )
            self.processes.append(process)
            self.idle.put(process)

    def _ask(self, stage: Stage) -> Outcome:
        process = self.idle.get()
        self.busy.add(process)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(stage.model_dump_json() + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            self.busy.discard(process)
            self.idle.put(process)
        if not line.endswith("\n"):
            raise UserError(
                f"{stage.out}: its process died; is the machine out of memory? Give the same command again, or fewer "
                "--jobs"
            )
        return _outcome(json.loads(line))


def _outcome(answer: dict[str, Any]) -> Outcome:
    """What a worker has answered.

    Raises:
        UserError, Interrupted: what it has run into.
    """
    if "outcome" in answer:
        return Outcome.model_validate(answer["outcome"])
    if "interrupted" in answer:
        raise Interrupted(answer["message"], answer["interrupted"])
    if "full" in answer:
        raise DiskFull(answer["full"], "")
    if "error" in answer:
        raise UserError(answer["error"])
    raise RuntimeError(f"a process that trains failed:\n{answer['failed']}")


def _answer(stage: Stage, engine: Engine) -> dict[str, Any]:
    try:
        return {"outcome": engine.train(stage).model_dump()}
    except Interrupted as stop:
        return {"interrupted": stop.signal_number, "message": str(stop)}
    except DiskFull as error:
        return {"full": error.problem}
    except UserError as error:
        return {"error": str(error)}
    except Exception:
        return {"failed": traceback.format_exc()}


def serve() -> None:
    """Run a worker until its input ends."""
    # A training hears them all the same, saves and leaves; whatever else a worker does is left to its parent. They are
    # not ignored: Python complains of one that came just before a training gave its handler back.
    for each in STOPPING:
        if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN:  # `nohup` keeps SIGHUP away
            signal.signal(each, lambda number, frame: None)
    parent = os.getppid()
    source = os.fdopen(os.dup(0), encoding="utf-8")
    target = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the answers

    def watch() -> None:
        if os.getppid() != parent:  # it was killed, and nobody waits for an answer
            signal.raise_signal(signal.SIGTERM)

    engine = Bakeoff(watch)
    with contextlib.suppress(BrokenPipeError):
        for line in source:
            answer = _answer(Stage.parse(json.loads(line), "stage"), engine)
            target.write(json.dumps(answer) + "\n")
            target.flush()
