"""Workers of a Ray cluster: the command's side, which gives jobs to Ray and takes notes and outcomes."""

import math
import time
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bakeoff.errors import UserError
from bakeoff.jobs.cluster.machines import Shared
from bakeoff.jobs.cluster.mailbox import Mailbox
from bakeoff.jobs.cluster.roll_call import require_machines
from bakeoff.jobs.cluster.task import Lost, on_machine
from bakeoff.jobs.job import BEGUN, Job, Note, Outcome
from bakeoff.jobs.runner import Say
from bakeoff.jobs.worker_process import outcome_of
from bakeoff.machine.cluster import cause, cluster, imported_ray, on_node, reason
from bakeoff.signals import stop_signals, tell_of_another

POLL = 0.5
"""Seconds between two questions for notes and outcomes."""

REFRESH = 5.0
"""Seconds between two counts of the cluster's machines."""

RETRIES = 3
"""Times that Ray gives a job again whose machine, or whose process, was lost; then it has to have made progress."""


class Given:
    """A job that was given to Ray.

    Args:
        job: the job.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.attempts = 0
        """Number of machines that have begun it."""
        self.done = 0
        """Steps done, as its notes say."""
        self.done_before = 0
        """Steps done when it was given to Ray."""


class RayWorkers:
    """The machines of a Ray cluster, see `job.Workers`; a context in which they are connected.

    When the context ends by an error or a signal, running jobs are asked to save their work, and waited for.

    Args:
        address: `local`, `auto` or HOST:PORT, see `machine.cluster`.
        out: the folder that all jobs write to; the caller holds it.
        read: files and folders that jobs read.
        threads: number of threads of each job.
        device: auto, cpu, cuda or mps, as for a job on this machine, which has to have such a device itself.
        jobs: the most jobs at once; None: as many as the cluster has room for.
        one_device: whether all jobs have to run on devices of the same name, because minutes were turned into steps.
        say: a function that prints a line.
    """

    def __init__(
        self,
        address: str,
        out: Path,
        read: Iterable[Path],
        threads: int,
        device: str,
        *,
        jobs: int | None,
        one_device: bool,
        say: Say,
    ) -> None:
        self.ray = imported_ray()
        self.address, self.shared, self.threads, self.jobs, self.say = address, Shared.of(out, read), threads, jobs, say
        self.asked, self.one_device = device, one_device
        self.given: dict[Any, tuple[Hashable, Given]] = {}
        """By Ray's reference to its outcome, a job with its key."""
        self.unfit: dict[str, str] = {}
        """By Ray's name, machines that do no jobs, with the reasons."""
        self.room, self.largest, self.refreshed = 0, 0, 0.0

    def __enter__(self) -> Self:
        from bakeoff.resources.device import resolve_device

        self.device = resolve_device(self.asked).type
        with ExitStack() as stack:
            stack.enter_context(cluster(self.ray, self.address))
            stack.callback(self.shared.remove_marks)
            self.shared.write_mark()
            here = on_node(self.ray, self.ray.get_runtime_context().get_node_id())
            self.mailbox = self.ray.remote(num_cpus=0)(Mailbox).options(scheduling_strategy=here).remote()
            self.task = self.ray.remote(max_retries=RETRIES, retry_exceptions=[Lost], scheduling_strategy="SPREAD")(
                on_machine
            )
            where = f"--ray {self.address}"
            self.only = require_machines(
                self.ray, where, self.shared, self.asked, self.device, self.one_device, self.say
            )
            self.room = self._room()
            self.ending = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with stop_signals():  # a second signal does not end the waiting for checkpoints, but for a late Ctrl-C
                if self.given:
                    if kind is KeyboardInterrupt:
                        tell_of_another()
                    self._stop()
        finally:
            self.ending.__exit__(kind, error, trace)

    @property
    def slots(self) -> int:
        """Number of jobs at once: one more than there is room for, so that a cluster that grows by need does."""
        return self.jobs or self.room + 1

    def begin(self, key: Hashable, job: Job) -> None:
        """Give a job to Ray, which gives it to a machine."""
        self._give(key, Given(job))

    def wait(self, noted: Callable[[Hashable, Note], None]) -> tuple[Hashable, Outcome] | None:
        """Wait until a job is done; returns its key and its outcome, or None if there is room for more jobs.

        Raises:
            UserError, DiskFull: the error of a job; a job whose machines were lost again and again is a UserError.
            RuntimeError: a job failed by a bug.
        """
        while True:
            done, _ = self.ray.wait([*self.given], timeout=POLL)
            for key, note in self.ray.get(self.mailbox.take.remote()):
                self._hear(key, note, noted)
            for reference in done:
                if (ended := self._ended(reference)) is not None:
                    return ended
            if time.monotonic() - self.refreshed > REFRESH:
                before, self.room = self.room, self._room()
                if self.room > before and not self.jobs:
                    return None

    def _give(self, key: Hashable, given: Given) -> None:
        given.done_before = given.done
        options = {"device": self.device, "threads": self.threads, "only": self.only}
        task = self.task.options(**self._resources(given.job))
        self.given[task.remote(given.job.message(), self.mailbox, key, self.shared, options)] = key, given

    def _resources(self, job: Job) -> dict[str, Any]:
        """What a job needs of its machine, at most as much as the largest machine has."""
        machines, memory = self._machines(), job.memory(self.device)
        self.largest = max(self.largest, memory)
        most = {name: max((each.get(name, 0) for each in machines), default=0) for name in ("CPU", "memory")}
        avoided = {"label_selector": {"ray.io/node-id": f"!in({','.join(self.unfit)})"}} if self.unfit else {}
        return {
            "name": job.title,
            "num_cpus": min(self.threads, most["CPU"] or self.threads),
            "num_gpus": int(self.device == "cuda"),
            "memory": int(min(memory, most["memory"])),
            **avoided,
        }

    def _machines(self) -> list[dict[str, float]]:
        """The resources of the machines that do jobs."""
        nodes = self.ray.nodes()
        return [each["Resources"] for each in nodes if each["Alive"] and each["NodeID"] not in self.unfit]

    def _room(self) -> int:
        """Number of jobs that the cluster has room for, at least 1."""
        self.refreshed = time.monotonic()
        return max(1, room_for(self._machines(), self.threads, self.largest, self.device == "cuda"))

    def _hear(self, key: Hashable, note: Note, noted: Callable[[Hashable, Note], None]) -> None:
        given = next((each for other, each in self.given.values() if other == key), None)
        if given is None:
            return
        if "machine" in note:
            given.attempts += 1
            noted(key, BEGUN)
            if given.attempts > 1:
                noted(key, {"line": f"{given.job.title}: its machine was lost; it goes on on {note['machine']}"})
            return
        given.done = max(given.done, note.get("done", 0))
        noted(key, note)

    def _ended(self, reference: Any) -> tuple[Hashable, Outcome] | None:
        """The key and the outcome of a job; None: it was given again."""
        key, given = self.given.pop(reference)
        title, errors = given.job.title, self.ray.exceptions
        try:
            said = self.ray.get(reference)
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError) and not isinstance(cause(error), Lost):
                raise RuntimeError(f"{title}: the task failed:\n{error}") from None
            if given.done <= given.done_before:
                raise UserError(
                    f"{title}: lost {RETRIES + 1} times without a step between ({reason(error)}); the same command "
                    "goes on from here"
                ) from None
            self._give(key, given)
            return None
        if "unfit" in said:
            self._leave_out(said["node"], said["machine"], said["unfit"])
            self._give(key, given)
            return None
        return key, outcome_of(said, title)

    def _leave_out(self, node: str, name: str, why: str) -> None:
        """Give no more jobs to a machine that has joined later.

        Raises:
            UserError: no other machine is left.
        """
        if node in self.unfit:
            return
        self.unfit[node] = why
        if not self._machines():
            raise UserError(f"--ray {self.address}: the machine {name} {why}")
        self.say(f"ATTENTION: the machine {name} gets no jobs: it {why}")

    def _stop(self) -> None:
        """Ask all jobs to save what they have, and wait for them; those that have not begun are called off."""
        with suppress(self.ray.exceptions.RayError):  # of a cluster that is gone
            self.ray.get(self.mailbox.stop.remote())
            for reference, (_, given) in self.given.items():
                if not given.attempts:
                    self.ray.cancel(reference)
            waiting = [*self.given]
            while waiting:
                _, waiting = self.ray.wait(waiting, timeout=POLL)


def room_for(machines: Iterable[dict[str, float]], threads: int, memory: int, gpus: bool) -> int:
    """Number of jobs that machines have room for at once.

    Args:
        machines: the resources of each machine, by Ray's names.
        threads: number of threads of a job.
        memory: bytes of memory of a job; 0: unknown.
        gpus: whether a job has a GPU.
    """
    room = 0.0
    for machine in machines:
        cores = machine.get("CPU", 0)
        of_cores = max(1, cores // threads) if cores else 0  # a job with more threads is slow, and the same
        of_memory = max(1, machine.get("memory", 0) // memory) if memory else math.inf
        room += min(of_cores, of_memory, machine.get("GPU", 0) if gpus else math.inf)
    return int(room)


def room_on(address: str, threads: int, memory: int, gpus: bool) -> int:
    """Number of jobs that a cluster has room for at once, at least 1; see `room_for`.

    Raises:
        UserError: Ray is not installed, or no cluster answers.
    """
    ray = imported_ray()
    with cluster(ray, address):
        machines = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    return max(1, room_for(machines, threads, memory, gpus))
