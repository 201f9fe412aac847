"""The capabilities of runs."""

from typing import Literal

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.scoring.texts import scoring_objective
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.using.filling import filling_objective

Capability = Literal["embed", "fill", "generate", "hidden", "logits", "predict", "score", "stream", "weights_of_tokens"]
"""The name of a method of `LoadedRun`."""


def capabilities_of(run: Run | FinetunedRun) -> frozenset[Capability]:
    """The methods of `LoadedRun` that work for a run."""
    capabilities: set[Capability] = {"embed", "hidden"}
    if isinstance(run, FinetunedRun):
        if run.task.input_sides is not None:
            capabilities.add("predict")
        if run.task.one_class:
            capabilities.add("weights_of_tokens")
        return frozenset(capabilities)
    recipe: Recipe = run.recipe
    if any(each.token_targets for each in recipe.objective):
        capabilities.add("logits")
    if any(each.generates for each in recipe.objective):
        capabilities |= {"generate", "stream"}
    if filling_objective(run) is not None:
        capabilities.add("fill")
    try:
        scoring_objective(run)
        capabilities.add("score")
    except UserError:
        pass
    return frozenset(capabilities)
