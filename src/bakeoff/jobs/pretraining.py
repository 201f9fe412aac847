"""A pre-training as a job: what the trials of searches and the trainings of comparisons have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from bakeoff.display.progress import Shown
from bakeoff.jobs.job import Job
from bakeoff.jobs.memory import job_memory
from bakeoff.models.layer_map import GrowBy
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe

if TYPE_CHECKING:
    from bakeoff.runs.run import Run


class PretrainingJob(Job):
    """A pre-training, up to its end or to a step at which it waits."""

    recipe: dict[str, Any]
    """The complete recipe."""
    corpus: str
    """Directory of the corpus, or several with weights."""
    budget: str
    """Budget of the whole training, such as `steps=1000`."""
    start: Path | None = None
    """The run that the first weights come from; None: random weights."""
    grow: int | None = None
    """Number of layers that the run's grow to; None: it has as many."""
    grow_by: GrowBy = "repeat"
    """Order of the copied layers."""
    until: int | None = None
    """The step after which the training waits; None: it ends."""

    def parsed(self) -> Recipe:
        """The recipe that is trained."""
        return Recipe.parse(self.recipe, str(self.out))

    @override
    def memory(self, device: str) -> int:
        return job_memory(self.recipe, self.corpus, device)

    def train(self, progress: Shown, watch: Callable[[int, float], None] | None = None, goes_on: bool = False) -> "Run":
        """Pre-train, or go on with what an interruption left; returns the run.

        Args:
            progress: as in `carry_out`.
            watch: a function that is called with the steps done and the seconds of their work; an exception that it
                raises ends the training.
            goes_on: whether it goes on from a stop at `until` that this job has made itself.
        """
        from bakeoff.training.initial_weights import Start
        from bakeoff.training.pretrain import pretrain

        return pretrain(
            self.parsed(),
            self.corpus,
            self.out,
            seed=self.seed,
            budget=Budget.parse_text(self.budget),
            device=self.device,
            start=None if self.start is None else Start(run=self.start, grow=self.grow, grow_by=self.grow_by),
            average_last=0,  # runs are compared, so that an average would be written for nobody
            resume=(self.out / "recipe.yaml").exists(),  # else a line would say that there is nothing to resume
            until=self.until,
            goes_on=goes_on,
            progress=progress,
            watch=None if watch is None else lambda position: watch(position.step, position.work_seconds),
        )
