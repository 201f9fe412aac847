"""A remark before a training whose steps are far larger than the budget or the machine allows for."""

from collections.abc import Iterator

from bakeoff.display.wording import counted, duration, quantity
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe

SMALL_ROWS, SMALL_LENGTH = 8, 128
"""The batch of the recipes for laptops, 1,024 tokens a step."""

FEW_STEPS = 100
"""Steps below which a budget is too small for large batches: models learn by steps more than by tokens."""

DEAR_STEP = 1e12
"""Floating-point operations of a step that is dear on a CPU: some ten seconds of a core."""

OF_A_CORE = 1e11
"""Floating-point operations that a core makes in a second, as an order of magnitude."""


def step_cost(recipe: Recipe, budget: Budget, tokens: float, flops: float, device: str) -> Iterator[str]:
    """A line on what a step costs, and on the settings that make it fit, where it is far larger than it should be.

    Args:
        recipe: the recipe, its budget in steps.
        budget: the budget that was asked for.
        tokens: mean number of tokens of a step.
        flops: mean number of floating-point operations of a step.
        device: cpu, cuda or mps.
    """
    steps, small = recipe.training.budget.steps or 1, SMALL_ROWS * SMALL_LENGTH
    few = budget.steps is None and steps < FEW_STEPS
    if tokens <= 4 * small or not (few or (device == "cpu" and flops > DEAR_STEP)):
        return
    rows = recipe.training.batch
    batch = f"{rows} rows of up to {recipe.input.length} tokens" if isinstance(rows, int) else f"{tokens:,.0f} tokens"
    if budget.minutes is not None:
        time = f", {duration(60 * budget.minutes / steps)} on this machine"
    elif device == "cpu":
        time = f", some {duration(flops / OF_A_CORE)} of a core"
    else:
        time = ""
    paid = f"the budget has {counted(steps, 'step')}"
    settings = f"training.batch={SMALL_ROWS if isinstance(rows, int) else f'{{tokens: {small}}}'}"
    if recipe.input.length > SMALL_LENGTH:
        settings = f"input.length={SMALL_LENGTH} and {settings}"
    many = steps * tokens / small
    more = "" if budget.steps is not None else f", and about {quantity(many).strip()} steps of the budget"
    yield (
        f"a step reads {batch} and costs {quantity(flops)}FLOPs{time}; {paid}. On a small machine or budget "
        f"{settings} (--set, of a run's recipe RUN/recipe.yaml) make steps of about {small:,} tokens{more}"
    )
