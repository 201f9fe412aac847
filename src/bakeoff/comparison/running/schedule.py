"""The order of a comparison's jobs, side by side or one at a time, and the recipes that are left out."""

from collections.abc import Callable, Iterable, Mapping

from bakeoff.comparison.results import Failure
from bakeoff.comparison.running.jobs import Finetuning, Pretraining

AnyJob = Pretraining | Finetuning


class Schedule:
    """All jobs of a comparison, in the order in which they run one at a time: all recipes of a seed, then the next one.

    A recipe that diverges is left out from the diverged job on, even where later jobs have run already, so that the
    outcome does not depend on the number of jobs side by side.

    Args:
        jobs: all jobs of the plan, in order; the place of a job is its index.
        seeds: the plan's seeds.
        lost: the failures of recipes that are left out from the start, by label.
        settled: a function that says whether a pre-training's steps are known; if not, the job waits for the first
            pre-training of its recipe.
    """

    def __init__(
        self,
        jobs: Iterable[AnyJob],
        seeds: list[int],
        lost: Mapping[str, Failure],
        settled: Callable[[Pretraining], bool],
    ) -> None:
        self.jobs, self.seeds, self.settled = list(jobs), seeds, settled
        self.lost = {name: (-1, failure) for name, failure in lost.items()}
        self.running: set[int] = set()
        self.over = {place for place, job in enumerate(self.jobs) if job.finished}
        self.worked: set[int] = set()
        """Seeds of which this call has begun at least one job."""
        for place, job in enumerate(self.jobs):
            if job.failure is not None and place not in self.over:
                self.diverged(place, job.failure)

    def diverged(self, place: int, message: str) -> None:
        """Count a job as diverged; its recipe is left out from this job on."""
        self.over.add(place)
        self.running.discard(place)
        job = self.jobs[place]
        failure = Failure(recipe=job.recipe.name, seed=job.seed, training=job.title, message=message)
        before = self.lost.get(job.recipe.name)
        if before is None or place < before[0]:
            self.lost[job.recipe.name] = (place, failure)

    def finished(self, place: int) -> None:
        """Count a job as done; jobs that wait for it may begin."""
        self.over.add(place)
        self.running.discard(place)

    def again(self, place: int) -> None:
        """Put a job that had begun back among the waiting ones."""
        self.running.discard(place)

    def next(self, longest_first: bool) -> int | None:
        """The place of the job that begins now; None: no job can begin before another one has ended.

        Args:
            longest_first: whether a seed's pre-trainings come before its fine-tunings, which are much shorter.
        """
        ready = [place for place in self.waiting if self._ready(self.jobs[place])]
        if longest_first:
            ready.sort(key=lambda place: (self.seeds.index(self.jobs[place].seed), not self._long(place)))
        if not ready:
            return None
        self.running.add(ready[0])
        self.worked.add(self.jobs[ready[0]].seed)
        return ready[0]

    @property
    def waiting(self) -> list[int]:
        """The places of jobs that have not begun and whose recipe is not left out."""
        return [
            place for place in range(len(self.jobs)) if place not in self.over | self.running and not self._left(place)
        ]

    def is_over(self, seeds: list[int]) -> bool:
        """Whether all jobs of these seeds are done or left out."""
        return not any(self.jobs[place].seed in seeds for place in [*self.waiting, *self.running])

    def failures(self, seeds: list[int]) -> dict[str, Failure]:
        """The failures of recipes that are left out of the results of these seeds, by label."""
        return {
            name: failure for name, (place, failure) in self.lost.items() if place < 0 or self.jobs[place].seed in seeds
        }

    def _left(self, place: int) -> bool:
        found = self.lost.get(self.jobs[place].recipe.name)
        return found is not None and place > found[0]

    def _long(self, place: int) -> bool:
        return isinstance(self.jobs[place], Pretraining)

    def _ready(self, job: AnyJob) -> bool:
        if isinstance(job, Pretraining):
            return self.settled(job)
        return job.initialisation == "scratch" or job.begins_from.finished
