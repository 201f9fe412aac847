"""The trainings of a comparison as a queue of jobs, with the reports between."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.results import Failure, Results
from bakeoff.comparison.running.correction import Pace
from bakeoff.comparison.running.equal_trainings import CopiedTraining, same_outcome
from bakeoff.comparison.running.planned import (
    AnyTraining,
    PlannedCooldown,
    PlannedMeasurement,
    PlannedPretraining,
    PlannedTrainings,
)
from bakeoff.comparison.running.schedule import Schedule
from bakeoff.comparison.running.spendable import Spendable
from bakeoff.comparison.running.texts import Text
from bakeoff.comparison.running.work import (
    LOOKED,
    ComparedFinetuning,
    ComparedMeasurement,
    ComparedPretraining,
    CooledPretraining,
)
from bakeoff.display.wording import quoted
from bakeoff.durable import remove
from bakeoff.errors import UserError
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.jobs.remaining import Load
from bakeoff.jobs.runner import Runner
from bakeoff.unfinished import unfinished_folder

Publish = Callable[[PlannedTrainings, list[int], dict[str, Failure]], Results]


class Trainings:
    """The pre-trainings and fine-tunings of a plan, as a queue of jobs.

    Args:
        planned: a function that gives all trainings, with the recipes and budgets known at the time of the call.
        texts: the corpus of each recipe and its tokenizer, by label.
        held_out: the corpus whose held-out text each recipe is measured on, by label; empty: none is.
        budget: the budget of each recipe.
        lost: the failures of recipes that are left out from the start, by label.
        runner: the runner.
        publish: a function that writes the results of finished seeds, without the recipes that have failed.
    """

    def __init__(
        self,
        planned: Callable[[], PlannedTrainings],
        texts: Mapping[str, Text],
        held_out: Mapping[str, Path],
        budget: Spendable,
        lost: Mapping[str, Failure],
        runner: Runner,
        publish: Publish,
    ) -> None:
        self.planned, self.texts, self.held_out, self.budget = planned, texts, held_out, budget
        self.runner, self.publish = runner, publish
        first = planned()
        self.plan, self.out = first.plan, first.out
        self.schedule = Schedule(first.all(), self.plan.seeds, lost, self._settled)
        self.published: list[int] = []
        self.results: Results | None = None
        for each in self.schedule.trainings:
            if isinstance(each, PlannedPretraining) and each.finished:
                remove(each.directory / "checkpoints", self.out)  # a kill came after the training's last file

    def run(self) -> Results:
        """Run the waiting trainings, and write the report after each seed.

        Raises:
            UserError: a training has not finished, or has met a mistake of the user's.
            Interrupted: SIGINT or SIGTERM came.
        """
        self._publish()
        self.runner.run(self, len(self.schedule.waiting))
        assert self.results is not None
        return self.results

    def next(self) -> tuple[int, Job] | None:
        """See `bakeoff.jobs.runner.Queue`; a job's key is its index in the schedule."""
        index = self.schedule.next(longest_first=self.runner.side_by_side)
        return None if index is None else (index, self._begin(index))

    def load(self, key: Any) -> Load:
        """See `bakeoff.jobs.runner.Queue`."""
        planned = self.schedule.trainings[key]
        if key in self.schedule.equals:
            return Load("copying", "a training")
        if isinstance(planned, PlannedCooldown):
            return Load("pre-training", f"{planned.recipe.name} with {100 * planned.share:g} %")
        if isinstance(planned, PlannedPretraining):
            return Load("pre-training", planned.recipe.name)
        if isinstance(planned, PlannedMeasurement):
            return Load("measurement", f"{planned.recipe.name} on {planned.measure.title}")
        return Load("fine-tuning", f"{planned.recipe.name} on {planned.task.name}")

    def ahead(self) -> list[Load]:
        """See `bakeoff.jobs.runner.Queue`."""
        return [self.load(index) for index in self.schedule.waiting]

    def noted(self, key: Any, note: Note) -> None:
        """See `bakeoff.jobs.runner.Queue`."""
        if note == LOOKED:
            self.budget.looked(self.schedule.trainings[key].recipe.name)

    def _title(self, index: int) -> str:
        planned = self.schedule.trainings[index]
        return f"seed {planned.seed}: {planned.title}"

    def _settled(self, planned: PlannedPretraining) -> bool:
        """Whether a pre-training's steps are final; with minutes, once the recipe's first pre-training is done."""
        if planned.seed == self.plan.seeds[0] or self.budget.pace(planned.recipe.name) is None:
            return True
        return self.planned().pretraining(planned.recipe, self.plan.seeds[0]).finished

    def _begin(self, index: int) -> Job:
        """Write a job's settings and show its title; leftovers of all but pre-trainings are removed."""
        now = self.planned()
        planned = now.renewed(self.schedule.trainings[index])
        planned.begin()
        done = self._same_that_is_done(index, planned, now)
        if done is not None:
            planned.discard(self.out)
            title = f"{self._title(index)}: the same as {quoted(done.recipe.name)}, copied"
            self.runner.say(title)
            return CopiedTraining(
                title=title, out=planned.directory, seed=planned.seed, device=self.plan.device, source=done.directory
            )
        self.runner.say(self._title(index))
        name = planned.recipe.name
        text, pretraining = self.texts[name], isinstance(planned, PlannedPretraining)
        common: dict[str, Any] = {
            "title": self._title(index),
            "out": planned.directory,
            "corpus": str(text.path if pretraining else text.tokenizer),
            "device": self.plan.device,
            "recipe": now.recipes[name],
        }
        if isinstance(planned, PlannedPretraining):
            pace = self.budget.pace(name) if planned.seed == self.plan.seeds[0] else None
            start = now.starts[name][planned.seed] if name in now.starts else None
            if start is not None:
                common |= {"start": Path(start.run), "grow": start.grow, "grow_by": start.grow_by}
            common |= {"seed": planned.seed, "budget": now.budgets[name]}
            if isinstance(planned, PlannedCooldown):
                return CooledPretraining(share=planned.share, **common)
            return ComparedPretraining(pace=pace, checkpoints=self._copies(now, planned, pace), **common)
        # The others are short: what an interruption left is made anew.
        planned.discard(self.out)
        remove(unfinished_folder(planned.directory), self.out.absolute())
        if isinstance(planned, PlannedMeasurement):
            held_out = str(self.held_out[name]) if planned.measure.reads_text else None
            run = planned.begins_from.directory
            return ComparedMeasurement(seed=planned.seed, run=run, measure=planned.measure, text=held_out, **common)
        source = planned.begins_from.directory if planned.initialisation == "pretrained" else None
        return ComparedFinetuning(seed=planned.random_seed, task=planned.task, source=source, **common)

    def _same_that_is_done(self, index: int, planned: AnyTraining, now: PlannedTrainings) -> AnyTraining | None:
        """A finished training with the same outcome as this one; None: there is none."""
        if index not in self.schedule.equals:
            return None
        first = now.renewed(self.schedule.trainings[self.schedule.equals[index]])
        return first if first.finished and same_outcome(first, planned) else None

    def _copies(self, now: PlannedTrainings, planned: PlannedPretraining, pace: Pace | None) -> dict[float, Path]:
        """The places of copies that are cooled down, with their settings beside them; of final steps alone."""
        if pace is not None:
            return {}  # the steps may change yet, so that those who cool down train up to there themselves
        waiting = [each for each in now.cooldowns(planned.recipe, planned.seed) if not each.directory.exists()]
        for each in waiting:
            each.begin()
        return {each.share: each.directory for each in waiting}

    def ended(self, key: Any, outcome: Outcome) -> None:
        """Record the outcome of a training: finished, diverged, or to begin anew with other steps.

        Raises:
            UserError: the training has not finished, for no known reason.
        """
        index, planned = key, self.schedule.trainings[key]
        if outcome.work_seconds is not None:
            planned.discard(self.out)  # first, for the corrected budget does not fit it
            self.budget.looked(planned.recipe.name, outcome.work_seconds)
            self.schedule.again(index)
        elif outcome.diverged is not None:
            planned.fail(outcome.diverged)
            self.schedule.diverged(index, outcome.diverged)
            lost = f"{quoted(planned.recipe.name)} is left out from here on"
            self.runner.say(f"{self._title(index)} diverged; {lost}: {outcome.diverged}")
        elif not planned.finished:
            raise UserError(f"{planned.directory}: did not finish; the same command goes on from here")
        else:
            self.schedule.finished(index)
        self._publish()

    def _publish(self) -> None:
        """Write the reports that are due: after each seed with a training in this call, and after the last seed."""
        while len(self.published) < len(self.plan.seeds):
            seeds = self.plan.seeds[: len(self.published) + 1]
            if not self.schedule.is_over(seeds):
                break
            self.published = seeds
            if seeds[-1] in self.schedule.worked or seeds == self.plan.seeds:
                self.results = self.publish(self.planned(), seeds, self.schedule.failures(seeds))
