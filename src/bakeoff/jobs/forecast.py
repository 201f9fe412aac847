"""What jobs will cost, before any of them begins: hours, disk and memory, by measured speed and counted bytes."""

from collections.abc import Sequence

import torch
from pydantic import Field

from bakeoff.config import Config
from bakeoff.display.wording import counted, duration, listed, memory
from bakeoff.jobs.choice import Asked
from bakeoff.jobs.cluster.workers import room_on
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.machine.capacity import free_memory
from bakeoff.machine.limits import Limits
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device
from bakeoff.resources.memory_need import BYTES_PER_NUMBER
from bakeoff.resources.threads import SharedMachine, needed_memory
from bakeoff.trainer.checkpoint import KEPT


class Size(Config):
    """The bytes of the trainings of a recipe."""

    weights: int
    """Bytes of the weights, which a finished run keeps."""
    checkpoint: int
    """Bytes of a checkpoint: weights and the optimizer's state."""
    memory: int
    """Bytes of memory of a training, on its device."""

    @classmethod
    def of(cls, recipe: Recipe, vocabulary: int, device: str) -> "Size":
        """The sizes of a recipe's pre-training, with a vocabulary of so many tokens."""
        module = build_on_meta(recipe, vocabulary)
        weights = module.parameter_count() * BYTES_PER_NUMBER
        optimizer = recipe.training.optimizer.kept(module) * BYTES_PER_NUMBER
        average = 0 if recipe.training.average is None else weights
        return cls(
            weights=weights,
            checkpoint=weights + optimizer + average,
            memory=needed_memory(recipe, vocabulary, resolve_device(device)),
        )

    @property
    def without_files(self) -> "Size":
        """The sizes of what runs the model and keeps numbers alone, which are small."""
        return self.model_copy(update={"weights": 0, "checkpoint": 0})

    @property
    def running(self) -> int:
        """Bytes on the disk of a training that runs: the checkpoints that are kept, and one that is being written."""
        return (KEPT + 1) * self.checkpoint


class Work(Config):
    """Jobs of one kind, which cost alike."""

    what: str
    """The noun of one job, in the singular."""
    of: str
    """The recipe."""
    jobs: int
    """Number of jobs that are to be done."""
    done: int = 0
    """Number of jobs that are done already."""
    seconds: float
    """Seconds of a job."""
    kept: int
    """Bytes on the disk of a finished job."""
    running: int
    """Bytes on the disk of a running job."""
    memory: int
    """Bytes of memory of a running job."""


class Forecast(Config):
    """The cost of jobs that have not begun."""

    works: list[Work]
    """The jobs by kind and recipe."""
    at_once: int
    """Number of jobs at once."""
    threads: int
    """Number of threads of each."""
    speed: list[str]
    """Sentences on where the speeds come from."""
    limits: Limits
    """The limits of the disk and of open files."""
    free_memory: int | None = Field(default=None)
    """Bytes of free memory; None: unknown, or the jobs are on other devices."""

    @classmethod
    def of(
        cls,
        works: Sequence[Work],
        asked: Asked,
        shared: SharedMachine | None,
        device: str,
        speed: Sequence[str],
        limits: Limits,
    ) -> "Forecast":
        """The forecast for jobs on this machine, or on a cluster, which is asked for its room.

        Args:
            works: the jobs.
            asked: who does them.
            shared: the division of this machine, see `Asked.shares`.
            device: auto, cpu, cuda or mps.
            speed: sentences on where the speeds come from.
            limits: the limits of the disk that is written to.
        """
        threads = torch.get_num_threads() if shared is None else shared.threads
        kind, at_once = resolve_device(device).type, 1 if shared is None else shared.jobs
        if asked.ray is not None:
            need = max((work.memory for work in works), default=0)
            at_once = asked.most or room_on(asked.ray, threads, need, gpus=kind == "cuda")
        return cls(
            works=[work for work in works if work.jobs or work.done],
            at_once=at_once,
            threads=threads,
            speed=[*speed],
            limits=limits,
            free_memory=free_memory() if kind == "cpu" and asked.ray is None else None,
        )

    @property
    def seconds(self) -> float:
        """Seconds until the last job is done, at least those of the longest."""
        waiting = [work for work in self.works if work.jobs]
        total = sum(work.jobs * work.seconds for work in waiting)
        return max([total / self.at_once, *(work.seconds for work in waiting)])

    @property
    def kept(self) -> int:
        """Bytes that will be added to the disk."""
        return sum(work.jobs * work.kept for work in self.works)

    @property
    def most_on_disk(self) -> int:
        """The most bytes that are added to the disk at any time."""
        return self.kept + self._largest("running")

    @property
    def memory(self) -> int:
        """The most bytes of memory of the jobs at once."""
        return self._largest("memory")

    def _largest(self, name: str) -> int:
        """The sum of a value over the jobs with the largest, as many as run at once."""
        each = [value for work in self.works for value in [getattr(work, name)] * min(work.jobs, self.at_once)]
        return sum(sorted(each, reverse=True)[: self.at_once])

    @property
    def problems(self) -> list[str]:
        """Sentences on what does not suffice."""
        lines = [*self.limits.problems]
        if self.limits.free_disk < self.most_on_disk:
            lines.append(
                f"the disk has {memory(self.limits.free_disk)} left, and the jobs need {memory(self.most_on_disk)}"
            )
        if self.free_memory is not None and self.free_memory < self.memory:
            lines.append(
                f"{memory(self.free_memory)} of memory are free, and {counted(self.at_once, 'job')} at once need "
                f"{memory(self.memory)}; fewer --jobs need less"
            )
        return lines

    def totals(self) -> dict[str, float]:
        """The sums over all jobs: seconds, and bytes of disk and memory."""
        return {
            "seconds": round(self.seconds, 1),
            "disk_at_the_end": self.kept,
            "disk_at_most": self.most_on_disk,
            "memory": self.memory,
        }

    def rows(self) -> dict[str, str]:
        """The forecast as names and values."""
        done = sum(work.done for work in self.works)
        named: dict[str, list[Work]] = {}
        for work in self.works:
            if work.jobs:
                named.setdefault(work.what, []).append(work)
        if not named:
            return {"jobs": f"none; {done:,} are done"}
        jobs = [counted(sum(work.jobs for work in works), what) for what, works in named.items()]
        times = [
            f"{duration(sum(work.jobs * work.seconds for work in works))} of {what}s" for what, works in named.items()
        ]
        side = f"{self.at_once} at once" if self.at_once > 1 else "one after the other"
        free = "" if self.free_memory is None else f"; {memory(self.free_memory)} are free"
        free_disk, threads = memory(self.limits.free_disk), f", with {counted(self.threads, 'thread')} each"
        return {
            "jobs": listed(jobs) + (f"; {done:,} more are done" if done else ""),
            "time": f"about {duration(self.seconds)}, {side}{threads}: {listed(times)}",
            "speed": "; ".join(self.speed),
            "disk": f"{memory(self.kept)} in the end, {memory(self.most_on_disk)} at most; {free_disk} are free",
            "memory": f"{memory(self.memory)} for {counted(self.at_once, 'job')} at once{free}",
        }
