"""One worker process of this machine, which does one job after the other; this is the parent's side.

It is a plain subprocess, which does not import the caller's main module. Jobs go to its standard input as lines of
JSON, notes and outcomes come from its standard output. The other side is `serving.py`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import DiskFull
from bakeoff.jobs.job import Note, Outcome
from bakeoff.machine.launch import without_launcher


class WorkerProcess:
    """A worker process.

    Args:
        device: the device of its jobs.
        threads: its number of threads.
    """

    def __init__(self, device: str, threads: int) -> None:
        code = "from bakeoff.jobs.serving import serve; serve()"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, str(threads), device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(threads),
            text=True,
            encoding="utf-8",
        )

    @property
    def alive(self) -> bool:
        """Whether the process can do another job."""
        return self.process.poll() is None

    def do(self, message: Note, noted: Callable[[Note], None]) -> Note | None:
        """Do a job.

        Args:
            message: the job, see `Job.message`.
            noted: a function that gets the notes on the way.

        Returns:
            The process's last word, for `outcome_of`; None: it was killed.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = json.dumps(message)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                said: Note = json.loads(line) if line.endswith("\n") else {}
                if "note" in said:
                    noted(said["note"])
                elif said:
                    return said
        except (BrokenPipeError, ValueError):  # it was killed
            pass
        return None

    def ask_to_stop(self) -> None:
        """Ask a training to save its checkpoint and to leave; before its first step it ignores that."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process, whatever it does."""
        self.process.kill()

    def end(self) -> None:
        """Kill the process, wait for its end, and close its streams."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def outcome_of(said: Note, title: str) -> Outcome:
    """The outcome in a process's last word about a job.

    Args:
        said: the word.
        title: the job in words.

    Raises:
        UserError, DiskFull, Interrupted: the error of the job.
        RuntimeError: the job failed by a bug.
    """
    if "outcome" in said:
        return Outcome.parse(said["outcome"], title)
    if "interrupted" in said:
        raise Interrupted(said["message"], said["interrupted"])
    if "full" in said:
        raise DiskFull(said["full"], "")
    if "error" in said:
        raise UserError(said["error"])
    raise RuntimeError(f"{title}: the process failed:\n{said['failed']}")


def _environment(threads: int) -> dict[str, str]:
    """The variables of this process, with `threads` threads for each numeric library, and a path to the package."""
    environment = {**without_launcher(os.environ), "TOKENIZERS_PARALLELISM": "false"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # The package may be on a path that was added in this process.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return environment
