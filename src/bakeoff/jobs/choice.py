"""Who does the jobs of a command: this process, processes side by side, or a Ray cluster."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from bakeoff.corpus.mixture import mixture_entries
from bakeoff.errors import UserError
from bakeoff.jobs.cluster.workers import RayWorkers
from bakeoff.jobs.job import Workers
from bakeoff.jobs.processes import Processes
from bakeoff.jobs.runner import Say
from bakeoff.machine.cluster import imported_ray, require_answer
from bakeoff.plugins import plugin_files
from bakeoff.recipe import Recipe
from bakeoff.resources.threads import SharedMachine, side_by_side


@dataclass(frozen=True)
class Asked:
    """The wish of the user.

    Raises:
        UserError: the number of jobs is less than 1.
    """

    jobs: int | Literal["auto"] = "auto"
    """Number of jobs at once, on a cluster the most; auto: as many as there is room for."""
    ray: str | None = None
    """The address of the Ray cluster that does the jobs; None: this machine does."""

    def __post_init__(self) -> None:
        if self.jobs != "auto" and self.jobs < 1:
            raise UserError(f"--jobs {self.jobs}: give at least 1")

    def require_cluster(self) -> None:
        """Refuse a cluster that does not answer, before anything is measured or written.

        Raises:
            UserError: Ray is not installed, or no cluster answers.
        """
        if self.ray is not None:
            imported_ray()
            require_answer(self.ray)

    @property
    def most(self) -> int | None:
        """The number of jobs at once, if one is given."""
        return None if self.jobs == "auto" else self.jobs

    def shares(
        self, recipes: Sequence[Recipe], vocabulary: int, device: str, threads: int | None
    ) -> SharedMachine | None:
        """The division of this machine, see `side_by_side`; on a cluster its number of threads holds for all machines.

        Args:
            recipes: the recipes to be trained.
            vocabulary: the size of the tokenizer.
            device: auto, cpu, cuda or mps.
            threads: a number of threads that is settled already; None: choose it.
        """
        if self.ray is None:
            return side_by_side(recipes, vocabulary, device, threads, self.most)
        shared = side_by_side(recipes, vocabulary, device, threads)
        return shared or SharedMachine(threads or torch.get_num_threads(), [device])

    def workers(
        self,
        shared: SharedMachine | None,
        out: Path,
        read: Iterable[Path],
        device: str,
        *,
        minutes: bool,
        say: Say,
    ) -> AbstractContextManager[Workers | None]:
        """Those who do the jobs; None: this process, one after the other.

        Args:
            shared: what `shares` gave.
            out: the folder that all jobs write to, which the caller holds.
            read: the files and folders that jobs read, besides plugins.
            device: auto, cpu, cuda or mps.
            minutes: whether the budget is in minutes, which makes steps of the speed of one device.
            say: a function that prints a line.
        """
        if self.ray is not None and shared is not None:
            files = [*read, *plugin_files()]
            return RayWorkers(self.ray, out, files, shared.threads, device, jobs=self.most, one_device=minutes, say=say)
        if shared is None or shared.jobs == 1:
            return nullcontext()
        return Processes(shared.devices, shared.threads)


def corpus_folders(corpus: str) -> list[Path]:
    """The folders of a corpus, or of all corpora of a mixture."""
    entries = mixture_entries(corpus)
    return [Path(folder) for folder, _ in entries] if entries else [Path(corpus)]
