"""A trial as a job, and the interface between a search and the rest of Bakeoff, which a test can replace."""

import math
from collections.abc import Callable
from typing import Any

from pydantic import Field

from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.progress import Shown
from bakeoff.errors import Diverged, UserError
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.jobs.pretraining import PretrainingJob
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe

WHOLE_TRIALS = {"training.save_at": None, "training.early_stopping": None}
"""Values of recipes for trials, which the search itself stops, and whose weights nobody asks for."""


class TrialPart(PretrainingJob):
    """A part of one trial, from its present step to the next evaluation."""

    measured_as: dict[str, Any] = Field(default={})
    """Keys of the recipe under which the held-out loss is measured; empty: the trial's own."""
    waited_at: int = 0
    """The step of the last evaluation, at which the trial waited for this part; 0: there was none."""

    def parsed(self) -> Recipe:
        """The recipe without what a trial does not need, and with the corpus's tokenizer, on which it would remark."""
        return super().parsed().changed(WHOLE_TRIALS).with_tokenizer(open_corpus(self.corpus).tokenizer.config)

    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Begin the trial, or go on with it, up to the evaluation."""
        try:
            run = self.train(progress, goes_on=self._goes_on())
        except Diverged as error:
            return self._diverged(str(error))
        lines = [line for line in run.metrics() if line["kind"] == "validation" and line["step"] == self.until]
        loss = self._measured() if self.measured_as else lines[-1]["loss"]
        if loss is None:
            return self._diverged(f"{self.out}: the held-out loss is no number, because there was no target")
        if not math.isfinite(loss):
            return self._diverged(f"{self.out}: the held-out loss is not a finite number")
        return self._outcome(loss=loss)

    def _goes_on(self) -> bool:
        """Whether the trial waits where the search has stopped it, and nothing has interrupted it since."""
        from bakeoff.runs.run import Run
        from bakeoff.training.cooling import waits_at

        begun = self.waited_at > 0 and (self.out / "recipe.yaml").exists()
        return begun and waits_at(Run.open(self.out), self.waited_at)

    def _diverged(self, message: str) -> Outcome:
        """The outcome of a divergence, which is noted beside the trial for whoever lists it."""
        from bakeoff.runs.records import note_divergence

        note_divergence(self.out, message)
        return self._outcome(diverged=message)

    def _outcome(self, **result: Any) -> Outcome:
        """The outcome with the trial's seconds and tokens so far, which are 0 where there are no metrics."""
        from bakeoff.runs.records import read_metrics

        lines = read_metrics(self.out / "metrics.jsonl", growing=True)
        last = max(lines, key=lambda line: line["step"], default={})
        return Outcome(seconds=float(last.get("seconds", 0.0)), tokens=int(last.get("tokens", 0)), **result)

    def _measured(self) -> float | None:
        """The held-out loss of the trial's present weights, measured under the keys of `measured_as`."""
        from bakeoff.resources.device import Placement, resolve_device, resolve_precision
        from bakeoff.runs.changed_run import changed_run
        from bakeoff.runs.run import Run
        from bakeoff.training.stages import make_batches
        from bakeoff.training.validation import HeldOut, validate

        run = changed_run(Run.open_trained(self.out), self.measured_as)
        corpus, on, training = open_corpus(self.corpus), resolve_device(self.device), run.recipe.training
        module = run.load(on)
        batches = make_batches(run.recipe, module, corpus, self.seed, split="validation")
        held_out = HeldOut(corpus.validation, batches.fixed(training.validation_examples), batches)
        placement = Placement(on, resolve_precision(training.precision, on))
        loss: float | None = validate(module, held_out, placement)["loss"]
        return loss


class TrialEngine:
    """What a search asks of the rest of Bakeoff: checks, numbers of steps, trainings."""

    def fingerprint(self, corpus: str) -> str:
        """16 hexadecimal digits that identify the corpus."""
        return open_corpus(corpus).fingerprint

    def check(self, recipe: Recipe, measured_as: dict[str, Any], corpus: str, device: str) -> None:
        """Refuse a recipe that cannot be trained on the corpus, or measured under the keys of `measured_as`."""
        from bakeoff.resources.device import resolve_device
        from bakeoff.runs.changed_run import unlike
        from bakeoff.training.stages import require_rows

        opened = open_corpus(corpus)
        require_rows(recipe, opened, resolve_device(device))
        if not measured_as:
            return
        changed = recipe.changed(measured_as)
        require_rows(changed, opened, resolve_device(device))
        if problem := unlike(recipe, changed, opened.tokenizer.size):
            raise UserError(
                "losses under another objective or input are compared under the recipe's own, which does not fit this "
                f"model: {problem}"
            )

    def steps(self, recipe: Recipe, budget: Budget, corpus: str, device: str) -> int:
        """The steps that a budget pays for."""
        from bakeoff.training.resolution import resolve_recipe

        return resolve_recipe(recipe, open_corpus(corpus), budget, device).training.budget.steps or 1

    def environment(self, device: str) -> dict[str, Any]:
        """Machine and versions, without the precision, which is in the recipes."""
        from bakeoff.resources.device import resolve_device
        from bakeoff.runs.environment import environment

        return {name: value for name, value in environment(resolve_device(device), "").items() if name != "precision"}

    def carry_out(self, job: Job, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Do a job in this process; workers have no engine."""
        return job.carry_out(progress, note)
