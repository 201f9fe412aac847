"""The trainings of a comparison, one at a time in this process or side by side in others, with the reports between."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.plan import Plan
from bakeoff.comparison.results import Failure, Results
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.jobs import Finetuning, Jobs, Pretraining
from bakeoff.comparison.running.schedule import Schedule
from bakeoff.comparison.running.spendable import Spendable
from bakeoff.comparison.running.work import LOOKED, JobOutcome, WorkOrder, carry_out
from bakeoff.display.wording import quoted
from bakeoff.durable import remove
from bakeoff.errors import UserError
from bakeoff.training.board import Board
from bakeoff.training.progress import Remarked, Shown
from bakeoff.workers.pool import Workers

CALL = "bakeoff.comparison.running.work:serve"
MODULES = ("bakeoff.training.pretrain", "bakeoff.tasks.finetune")
"""Modules that workers import when they start, because the import takes seconds."""

Publish = Callable[[Jobs, list[int], dict[str, Failure]], Results]


class Trainings:
    """The pre-trainings and fine-tunings of a plan.

    Args:
        plan: the plan.
        out: the comparison's directory.
        recipes: the recipes as they are trained, with the values that searches have found, by label.
        jobs: a function that gives all jobs with the budgets known at the time of the call.
        budget: the budget of each recipe.
        lost: the failures of recipes that are left out from the start, by label.
        engine: the engine that trains in this process; workers have their own.
        progress: a function that shows a line; None: nothing is shown.
        starts: the runs that recipes start from, by label; all other recipes start with random weights.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path,
        recipes: Mapping[str, Any],
        jobs: Callable[[], Jobs],
        budget: Spendable,
        lost: Mapping[str, Failure],
        engine: Engine,
        progress: Callable[[str], None] | None,
        starts: Mapping[str, Path] | None = None,
    ) -> None:
        self.starts = starts or {}
        self.plan, self.out, self.recipes, self.jobs, self.budget = plan, out, recipes, jobs, budget
        self.engine, self.loud = engine, progress is not None
        self.say: Callable[[str], None] = progress or (lambda line: None)
        self.progress = progress
        self.schedule = Schedule(jobs().all(), plan.seeds, lost, self._settled)
        self.published: list[int] = []
        for job in self.schedule.jobs:
            if isinstance(job, Pretraining) and job.finished:
                remove(job.directory / "checkpoints", out)  # a kill came after the training's last file

    def run(self, workers: Workers | None, publish: Publish) -> Results:
        """Run the waiting trainings, and write the report after each seed.

        Args:
            workers: processes that train side by side; None: one training at a time, in this process.
            publish: a function that writes the results of finished seeds, without the recipes that have failed.

        Raises:
            UserError: a training has not finished, or has met a mistake of the user's.
            Interrupted: SIGINT or SIGTERM came.
        """
        results = self._publish(publish)
        if workers is None:
            shown: Shown = Remarked() if self.loud else False
            while (place := self.schedule.next(longest_first=False)) is not None:
                order = self._begin(place)
                note = self._noted(place)
                self._end(place, carry_out(order, self._recipe(place), self.engine, shown, note))
                results = self._publish(publish) or results
        else:
            total = len(self.schedule.waiting)
            with Board(self.progress, total, "training") as board:
                self.say = board.say
                results = self._side_by_side(workers, publish, board) or results
        assert results is not None
        return results

    def _side_by_side(self, workers: Workers, publish: Publish, board: Board) -> Results | None:
        results = None
        while True:
            while workers.unanswered < workers.count:
                place = self.schedule.next(longest_first=True)
                if place is None:
                    break
                order = self._begin(place)
                title = self._title(place)
                board.begin(place, title)
                recipe = self._recipe(place).model_dump(mode="json")
                values = {"order": order.model_dump(mode="json"), "recipe": recipe, "shown": self.loud}
                workers.give(place, title, CALL, values)
            results = self._publish(publish) or results
            if not workers.unanswered:
                return results
            heard = workers.hear()
            assert heard is not None
            assert isinstance(heard.key, int)
            if heard.note is not None:
                self._noted(heard.key)(heard.note) if heard.note == LOOKED else board.hear(heard.key, heard.note)
                continue
            outcome = JobOutcome.parse(heard.answer, self._title(heard.key))
            board.end(heard.key, over=outcome.work_seconds is None)
            self._end(heard.key, outcome)

    def _title(self, place: int) -> str:
        job = self.schedule.jobs[place]
        return f"seed {job.seed}: {job.title}"

    def _recipe(self, place: int) -> Any:
        return self.recipes[self.schedule.jobs[place].recipe.name]

    def _settled(self, job: Pretraining) -> bool:
        """Whether a pre-training's steps are final; with minutes, once the recipe's first pre-training is done."""
        if job.seed == self.plan.seeds[0] or self.budget.pace(job.recipe.name) is None:
            return True
        return self.jobs().pretraining(job.recipe, self.plan.seeds[0]).finished

    def _begin(self, place: int) -> WorkOrder:
        """Write a job's settings, show its title and make its order; a fine-tuning's leftovers are removed."""
        job: Pretraining | Finetuning = self.jobs().renewed(self.schedule.jobs[place])
        job.begin()
        self.say(self._title(place))
        common: dict[str, Any] = {"out": job.directory, "corpus": self.plan.corpus, "device": self.plan.device}
        if isinstance(job, Pretraining):
            pace = self.budget.pace(job.recipe.name) if job.seed == self.plan.seeds[0] else None
            start = self.starts.get(job.recipe.name)
            return WorkOrder(seed=job.seed, budget=job.settings["budget"], pace=pace, start=start, **common)
        # Fine-tuning is short: what an interruption left is made anew.
        job.discard(self.out)
        source = job.begins_from.directory if job.initialisation == "pretrained" else None
        return WorkOrder(seed=job.random_seed, task=job.task, source=source, **common)

    def _noted(self, place: int) -> Callable[[dict[str, Any]], None]:
        return lambda note: self.budget.looked(self.schedule.jobs[place].recipe.name)

    def _end(self, place: int, outcome: JobOutcome) -> None:
        """Record the outcome of a job: finished, diverged, or to begin anew with other steps.

        Raises:
            UserError: the job has not finished, for no known reason.
        """
        job = self.schedule.jobs[place]
        if outcome.work_seconds is not None:
            job.discard(self.out)  # first, for the corrected budget does not fit it
            self.budget.looked(job.recipe.name, outcome.work_seconds)
            self.schedule.again(place)
        elif outcome.diverged is not None:
            job.fail(outcome.diverged)
            self.schedule.diverged(place, outcome.diverged)
            lost = f"{quoted(job.recipe.name)} is left out from here on"
            self.say(f"{self._title(place)} diverged; {lost}: {outcome.diverged}")
        elif not job.finished:
            raise UserError(f"{job.directory}: did not finish; the same command goes on from here")
        else:
            self.schedule.finished(place)

    def _publish(self, publish: Publish) -> Results | None:
        """Write the reports that are due: after each seed with a training in this call, and after the last seed."""
        results = None
        while len(self.published) < len(self.plan.seeds):
            seeds = self.plan.seeds[: len(self.published) + 1]
            if not self.schedule.is_over(seeds):
                break
            self.published = seeds
            if seeds[-1] in self.schedule.worked or seeds == self.plan.seeds:
                results = publish(self.jobs(), seeds, self.schedule.failures(seeds))
        return results
