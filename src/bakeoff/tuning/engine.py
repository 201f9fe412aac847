"""The interface between a search and the rest of Bakeoff, which a test can replace."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import Field

from bakeoff.config import Config
from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import Diverged, UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.training.progress import Shown

WHOLE_TRIALS = {"training.save_at": None, "training.early_stopping": None}
"""Values of recipes for trials, which the search itself stops, and whose weights nobody asks for."""


class Stage(Config):
    """A part of one trial, from its present step to the next look."""

    recipe: dict[str, Any]
    """The trial's complete recipe."""
    corpus: str
    """Directory of the corpus, or several with weights."""
    out: str
    """Directory of the trial's run."""
    seed: int
    """The trial's seed."""
    device: str
    """auto, cpu, cuda or mps."""
    steps: int
    """Steps of the whole trial."""
    until: int
    """The step after which the trial is measured and waits."""
    start: Path | None = None
    """The run that the first weights come from; None: random weights."""
    measured_as: dict[str, Any] = Field(default={})
    """Keys of the recipe under which the held-out loss is measured; empty: the trial's own."""


class TrialOutcome(Config):
    """The state of a trial so far."""

    loss: float | None
    """The held-out loss at the look; None: the trial diverged."""
    seconds: float = 0.0
    """Seconds in optimizer steps."""
    tokens: int = 0
    """Tokens seen."""
    diverged: str | None = None
    """The message of a trial whose loss is not a number any more; None: the trial has not diverged."""


class TrialEngine:
    """The work of a search: checks, numbers of steps, trainings, measurements.

    Args:
        watch: a function that each training calls when it reads its figures; an exception of it ends the training.
    """

    def __init__(self, watch: Callable[[], None] | None = None) -> None:
        self.watch = watch

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

    def train(self, stage: Stage, progress: Shown = False) -> TrialOutcome:
        """Begin a trial, or go on with it, up to the look at the stage's end."""
        from bakeoff.training.initial_weights import Start
        from bakeoff.training.pretrain import pretrain

        out = Path(stage.out)
        begun = (out / "recipe.yaml").exists()  # else a line would say that there is nothing to resume
        watch = self.watch
        recipe = Recipe.parse(stage.recipe, stage.out).changed(WHOLE_TRIALS)
        try:
            run = pretrain(
                recipe.with_tokenizer(open_corpus(stage.corpus).tokenizer.config),  # else each trial would remark on it
                stage.corpus,
                out,
                seed=stage.seed,
                budget=Budget(steps=stage.steps),
                device=stage.device,
                start=None if stage.start is None else Start(run=stage.start),
                average_last=0,
                resume=begun,
                until=stage.until,
                progress=progress,
                watch=None if watch is None else lambda position: watch(),
            )
        except Diverged as error:
            return TrialOutcome(loss=None, diverged=str(error), **_spent(out))
        lines = [line for line in run.metrics() if line["kind"] == "validation" and line["step"] == stage.until]
        loss = self._measured(stage) if stage.measured_as else lines[-1]["loss"]
        if loss is None:
            reason = f"{out}: the held-out loss is no number, because there was no target"
            return TrialOutcome(loss=None, diverged=reason, **_spent(out))
        if not math.isfinite(loss):
            return TrialOutcome(loss=None, diverged=f"{out}: the held-out loss is not a finite number", **_spent(out))
        return TrialOutcome(loss=loss, **_spent(out))

    def _measured(self, stage: Stage) -> float | None:
        """The held-out loss of the trial's present weights, measured under the keys of `stage.measured_as`."""
        from bakeoff.resources.device import Placement, resolve_device, resolve_precision
        from bakeoff.runs.changed_run import changed_run
        from bakeoff.runs.run import Run
        from bakeoff.training.stages import make_batches
        from bakeoff.training.validation import HeldOut, validate

        run = changed_run(Run.open_trained(stage.out), stage.measured_as)
        corpus, on, training = open_corpus(stage.corpus), resolve_device(stage.device), run.recipe.training
        module = run.load(on)
        batches = make_batches(run.recipe, module, corpus, stage.seed, split="validation")
        held_out = HeldOut(corpus.validation, batches.fixed(training.validation_examples))
        placement = Placement(on, resolve_precision(training.precision, on))
        loss: float | None = validate(module, held_out, placement)["loss"]
        return loss

    def environment(self, device: str) -> dict[str, Any]:
        """Machine and versions, without the precision, which is in the recipes."""
        from bakeoff.resources.device import resolve_device
        from bakeoff.runs.environment import environment

        return {name: value for name, value in environment(resolve_device(device), "").items() if name != "precision"}


def _spent(out: Path) -> dict[str, Any]:
    """Seconds and tokens of a trial so far, for its outcome; 0 where there are no metrics."""
    from bakeoff.runs.records import read_metrics

    lines = read_metrics(out / "metrics.jsonl", growing=True)
    last = max(lines, key=lambda line: line["step"], default={})
    return {"seconds": float(last.get("seconds", 0.0)), "tokens": int(last.get("tokens", 0))}
