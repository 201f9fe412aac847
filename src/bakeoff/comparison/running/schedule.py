"""Which of a comparison's jobs may begin, when several run side by side or one at a time."""

from collections.abc import Callable, Iterable, Mapping

from bakeoff.comparison.results import Failure
from bakeoff.comparison.running.jobs import Finetuning, Pretraining

AnyJob = Pretraining | Finetuning


class Schedule:
    """All jobs, in the order in which they run one at a time: all recipes of a seed, then the next seed.

    A recipe that diverges is left out from the diverged job on, even where later jobs have run already, so that the
    outcome does not depend on the number of jobs side by side.

    Args:
        jobs: all of them.
        seeds: the plan's.
        lost: recipes that are left out from the start.
        settled: whether the steps of a pre-training are known; else it waits for the first one of its recipe.
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
        """Seeds of which anything was trained."""
        for place, job in enumerate(self.jobs):
            if job.failure is not None and place not in self.over:
                self.diverged(place, job.failure)

    def diverged(self, place: int, message: str) -> None:
        """Count a job as diverged; its recipe is left out from there on."""
        self.over.add(place)
        self.running.discard(place)
        job = self.jobs[place]
        failure = Failure(recipe=job.recipe.name, seed=job.seed, training=job.title, message=message)
        before = self.lost.get(job.recipe.name)
        if before is None or place < before[0]:
            self.lost[job.recipe.name] = (place, failure)

    def finished(self, place: int) -> None:
        """Count a job as done; those that wait for it may begin."""
        self.over.add(place)
        self.running.discard(place)

    def again(self, place: int) -> None:
        """A job that had begun waits once more."""
        self.running.discard(place)

    def next(self, longest_first: bool) -> int | None:
        """The place of the job that begins now; None: none can, as long as no other has ended.

        Args:
            longest_first: a seed's pre-trainings come first, because its other jobs are short beside them.
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
        """The places of the jobs that have not begun and are not left out."""
        return [
            place for place in range(len(self.jobs)) if place not in self.over | self.running and not self._left(place)
        ]

    def is_over(self, seeds: list[int]) -> bool:
        """Whether nothing of these seeds is to be done any more."""
        return not any(self.jobs[place].seed in seeds for place in [*self.waiting, *self.running])

    def failures(self, seeds: list[int]) -> dict[str, Failure]:
        """The recipes that are left out of the results of these seeds."""
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
