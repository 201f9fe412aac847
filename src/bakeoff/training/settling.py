"""What is decided before the module of a pre-training is built: threads, steps, and whether all is done already."""

from pathlib import Path
from typing import NamedTuple

import torch

from bakeoff.durable import remove, without_links
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.resources.micro_batch import Size, plain_size
from bakeoff.resources.thread_choice import quickest, resolve_threads
from bakeoff.resources.threads import default_threads
from bakeoff.runs.beginning import require_no_run
from bakeoff.runs.run import Run
from bakeoff.training.averaging import MOVED, average_path, is_average_of
from bakeoff.training.opening import Opened
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.resumption import changes_budget, older_rules, require_same_request, with_budget
from bakeoff.training.speed import stepper
from bakeoff.training.stages import Stages, require_shares
from bakeoff.unfinished import require_free


class Settled(NamedTuple):
    """A pre-training as it will be run."""

    opened: Opened
    recipe: Recipe
    """The recipe with everything decided, its budget in steps."""
    average: Path | None
    """The place of the run with the mean of the last weights; None: there will be none."""
    done: Run | None
    """The run, where all is done already."""
    changed: list[str]
    """Lines on another number of steps than the run was begun with."""
    older: list[str]
    """Rules that have changed since the run was begun, in the words that follow `begun before`."""

    @property
    def steps(self) -> int:
        """The number of steps of the whole training."""
        return self.recipe.training.budget.steps or 0

    def gone_on(self, run: Run, size: Size) -> "Settled":
        """The same training, where it goes on in its run with another size of micro-batches."""
        recipe = self.recipe.changed({"training.micro_batch": plain_size(size)})
        return self._replace(opened=self.opened._replace(run=run), recipe=recipe, changed=[], older=[])


def settle(opened: Opened) -> Settled:
    """Decide on a pre-training, and change the files of a run whose budget changes.

    Raises:
        UserError: the run was begun with other settings, its budget cannot change, or a place is taken.
    """
    asked, run, processes = opened.asked, opened.run, opened.asked.processes
    require_shares(processes, opened.recipe if run is None else run.recipe, begun=run is not None)
    if opened.device.type == "cpu":
        recorded = None if run is None else int(run.environment["threads"])
        chosen = resolve_threads(asked.threads, recorded, lambda: _quickest_threads(opened))
        torch.set_num_threads(chosen or torch.get_num_threads())
    count = 0 if asked.finish_now else opened.recipe.training.average_last
    average = average_path(asked.out, count) if count else None
    if run is None:
        processes.once(lambda: require_no_run(asked.out))
        older, changed, done = list[str](), list[str](), None
    else:
        older, changed = _gone_on_with(run, opened)
        done = run if processes.once(lambda: run.finished and _whole(run, average)) else None
    if average is not None and done is None:
        processes.once(lambda: require_free(average, advice=MOVED))
    recipe = _with_teachers(run.recipe, opened) if run else _resolved(opened, asked.budget)
    return Settled(opened, recipe, average, done, changed, older)


def _with_teachers(recipe: Recipe, opened: Opened) -> Recipe:
    """The recipe of a run that is gone on with, its teachers where they stand now; without them where none is read."""
    if recipe.training.distillation is None:
        return recipe
    now = None if opened.asked.finish_now else opened.recipe.training.distillation
    return recipe.changed({"training.distillation": None if now is None else now.model_dump(mode="json")})


def _gone_on_with(run: Run, opened: Opened) -> tuple[list[str], list[str]]:
    """Rules that have changed since a run was begun, and lines on a change of its budget, which is made."""
    budget, processes = opened.asked.budget, opened.asked.processes

    def compared() -> tuple[list[str], bool]:
        without_links(run.path)
        require_same_request(run, opened.request)
        return older_rules(run), budget is not None and changes_budget(run, budget)

    older, changes = processes.once(compared)
    if budget is None or not changes:
        return older, []
    longer = _resolved(opened, budget).training.budget.steps or 0
    lines = processes.once(lambda: with_budget(run, budget, longer))
    run.recipe = processes.once(lambda: run.recipe)
    return older, lines


def _resolved(opened: Opened, budget: Budget | None) -> Recipe:
    """The recipe that is asked for, with everything decided."""
    asked = opened.asked
    before = opened.steps_before, opened.tokens_before
    return resolve_recipe(opened.recipe, opened.corpus, budget, asked.device, asked.processes, *before)


def _whole(run: Run, average: Path | None) -> bool:
    """Whether a finished run needs nothing more; what a kill has left beside it is removed."""
    remove(run.checkpoints)
    if average is not None and is_average_of(run, average):
        remove(run.snapshots)
    return not run.snapshots.exists()


def _quickest_threads(opened: Opened) -> int:
    """The number of threads that is quickest in a short measurement of the first stage's steps.

    Of several processes each takes as many as torch has, which torchrun and OMP_NUM_THREADS say.
    """
    if not opened.asked.processes.alone:
        return torch.get_num_threads()
    recipe, corpus, device = opened.recipe, opened.corpus, opened.device
    budget = opened.asked.budget or recipe.training.budget
    minutes = budget.minutes
    # Minutes are turned into steps after the measurement, which does not depend on the number of steps.
    fitted = resolve_recipe(recipe, corpus, budget if minutes is None else Budget(steps=1000), opened.asked.device)
    steps, first = fitted.training.budget.steps or 1, fitted.stages()[0]
    _, flops = Stages(fitted, build_on_meta(fitted, corpus.tokenizer.size), corpus, seed=0).means()

    def whole(seconds: float) -> float:
        return seconds * steps if minutes is None else 60 * minutes

    default = default_threads(fitted, corpus.tokenizer.size)
    return quickest(lambda: stepper(first, corpus, device), flops, whole, default)
