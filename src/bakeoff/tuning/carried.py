"""The best trial's recipe, for a training that is longer than a trial."""

from typing import Any

from bakeoff.optimization.budget import Budget
from bakeoff.optimization.carrying import carried
from bakeoff.recipe import Recipe
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.ranges import RATE, searched
from bakeoff.tuning.results import CarriedRate


def budget_change(budget: Budget) -> dict[str, Any]:
    """The change of a recipe that gives it a budget."""
    return {"training.budget": budget.model_dump(exclude_none=True)}


def carried_recipe(
    planning: Planning, recipe: Recipe, trial_steps: int, budget: Budget | None
) -> tuple[Recipe, CarriedRate | None]:
    """The recipe of a trial with the budget of a coming training, its rate carried to that budget.

    Args:
        planning: the plan of the search.
        recipe: the recipe of the trial.
        trial_steps: steps of the trial.
        budget: budget of the coming training; None: unknown, and the recipe says at how many steps its rate was found.

    Returns:
        The recipe, and the carried rate with its rule; None for the rate where there is no budget.
    """
    optimizer = recipe.training.optimizer
    rate_searched = searched(planning.ranges, RATE)
    if budget is None:
        follows = optimizer.length_exponent is not None and rate_searched
        return recipe.changed({RATE: {"rate": optimizer.rate, "steps": trial_steps}}) if follows else recipe, None
    steps = planning.engine.steps(recipe, budget, planning.corpus, planning.device)
    found = carried(optimizer.rate, optimizer.length_exponent, steps / trial_steps, rate_searched)
    told = CarriedRate(budget=str(budget), steps=steps, rate=found.rate, rule=found.rule)
    return recipe.changed({RATE: found.rate, **budget_change(budget)}), told
