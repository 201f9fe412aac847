"""One job on a machine of a Ray cluster: what a Ray task does."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bakeoff.durable import held
from bakeoff.errors import UserError
from bakeoff.jobs.cluster.machines import Shared, machine_here, other_device
from bakeoff.jobs.job import Note
from bakeoff.jobs.worker_process import WorkerProcess
from bakeoff.machine.cluster import imported_ray
from bakeoff.repeating import repeating
from bakeoff.signals import signals_held_back
from bakeoff.unfinished import unfinished_folder

ASK = 1.0
"""Seconds between two questions whether the job is to stop."""

PATIENCE = 120.0
"""Seconds for which a job waits until a machine that was lost lets go of the job's folder."""


class Lost(Exception):
    """The process of a job has ended without an outcome, so that Ray gives the job to another machine."""


class Told:
    """The command, as a task sees it.

    Args:
        note: a function that brings a note to the command.
        stopped: a function that says whether the command asks to stop, or is gone.
    """

    def __init__(self, note: Callable[[Note], None], stopped: Callable[[], bool]) -> None:
        self.note, self.stopped = note, stopped


def carry_out(
    message: Note, told: Told, shared: Shared, node: str, *, device: str, threads: int, only: str | None
) -> Note:
    """Do a job in a process of this machine, or go on with it.

    Args:
        message: the job, see `Job.message`.
        told: the command.
        shared: the files that the job needs.
        node: Ray's name of this machine.
        device: the device of the job.
        threads: the number of threads of the job.
        only: the name of the only device that may do it; None: any may.

    Returns:
        The process's last word, see `outcome_of`; or `unfit` with the reason why the machine can do no job.

    Raises:
        Lost: the process was killed, or somebody else than the command has stopped it.
    """
    here = machine_here(shared, gpus=device != "cpu")
    unfit = here.problem or other_device(here, only)
    if unfit is not None:
        return {"unfit": unfit, "machine": here.name, "node": node}
    told.note({"machine": here.name, "node": node})
    _wait_for_folder(Path(message["values"]["out"]), told)
    if told.stopped():
        return _stopped(message)
    with _process(device, threads) as process, _stopping(process, told):
        said = process.do(message, told.note)
    if told.stopped():
        return said or _stopped(message)
    if said is None:
        raise Lost(f"its process was killed on {here.name}; is the machine out of memory?")
    if "interrupted" in said:
        raise Lost(f"its process was stopped on {here.name}")
    return said


_KEPT: dict[tuple[str | int, ...], WorkerProcess] = {}
"""An idle process for the next job, by device and threads: it takes seconds to start."""


@contextmanager
def _process(device: str, threads: int) -> Iterator[WorkerProcess]:
    """A worker process, new or idle, which is kept afterwards if it lives."""
    key = (device, threads, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    process = _KEPT.pop(key, None)
    if process is None or not process.alive:
        with signals_held_back():
            process = WorkerProcess(device, threads)
    try:
        yield process
    except BaseException:
        process.end()
        raise
    if process.alive:
        _KEPT[key] = process
    else:
        process.end()


def _stopped(message: Note) -> Note:
    return {"interrupted": 15, "message": f"{message['values']['title']}: stopped before it began"}


def _wait_for_folder(out: Path, told: Told) -> None:
    """Wait until no other process writes to a job's folder: a machine that was lost may be busy with it for a while."""
    until = time.monotonic() + PATIENCE
    for folder in (out, unfinished_folder(out)):
        while folder.is_dir() and not told.stopped() and time.monotonic() < until:
            try:
                with held(folder):
                    break
            except UserError:
                time.sleep(ASK)


@contextmanager
def _stopping(process: WorkerProcess, told: Told) -> Iterator[None]:
    """Ask a process to stop, again and again, once the command asks for it."""

    def watch() -> None:
        if told.stopped():
            process.ask_to_stop()

    with repeating(ASK, watch, "bakeoff-stopping"):
        yield


def on_machine(message: Note, mailbox: Any, key: Any, shared: Shared, options: dict[str, Any]) -> Note:
    """`carry_out` as a Ray task, with an actor for the notes and the word to stop."""
    ray = imported_ray()

    def note(each: Note) -> None:
        ray.get(mailbox.put.remote(key, each))

    def stopped() -> bool:
        try:
            return bool(ray.get(mailbox.stopped.remote()))
        except ray.exceptions.RayError:  # the command's machine is gone
            return True

    node = ray.get_runtime_context().get_node_id()
    return carry_out(message, Told(note, stopped), shared, node, **options)
