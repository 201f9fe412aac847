"""The end of a training before its time: from a step on its learning rate falls to zero, as if the budget ended there.

A copy of a run that waits at a step is a training of its own: it reads on what the other one would have read, with the
same weights and the same state of the optimizer, while its learning rate falls on a line from what it is to zero
(Haegele et al. 2024, arXiv:2405.18392).
"""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from bakeoff.durable import own_folder, remove
from bakeoff.errors import UserError
from bakeoff.optimization.optimizers.base_config import DecayConfig
from bakeoff.recipe import Recipe
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.run import Run

SHARE = 0.2
"""The share of the steps in which the learning rate falls."""
FEWEST_STEPS = 10
"""The fewest steps of a training that ends before its time."""


def cooling_from(steps: int) -> int:
    """The step from which the learning rate falls, for a training that ends after so many steps."""
    return steps - max(1, round(SHARE * steps))


def require_coolable(recipe: Recipe, steps: int | None, shares: Sequence[float]) -> None:
    """Refuse a training that cannot also end after these shares of its steps.

    Args:
        recipe: the recipe.
        steps: the steps of the whole training; None: not known yet.
        shares: the shares.

    Raises:
        UserError: a setting depends on the share of all steps that is done, the training may stop by itself, or a share
            is of fewer than `FEWEST_STEPS` steps.
    """
    if steps is not None and (short := [share for share in shares if round(share * steps) < FEWEST_STEPS]):
        least = math.ceil(1000 * FEWEST_STEPS / steps) / 10
        raise UserError(
            f"{100 * min(short):g} % of {steps:,} steps are {round(min(short) * steps)}, and {FEWEST_STEPS} are "
            f"the fewest; give {f'{least:g} % at least' if least < 100 else 'a larger budget'}"
        )
    moving = [*recipe.moves_with_the_steps, *(["training.early_stopping"] if recipe.training.early_stopping else [])]
    if moving:
        raise UserError(f"{moving[0]} depends on the whole length of the training, which cannot end before its time")


def waits_at(run: Run, step: int) -> bool:
    """Whether an unfinished run's newest checkpoint is of that step."""
    kept = list_checkpoints(run.checkpoints)
    return not run.finished and bool(kept) and checkpoint_step(kept[-1]) == step


def branch_off(run: Run, to: Path) -> None:
    """Copy an unfinished run, to be cooled down there; a kill leaves all of the copy, or nothing under its name."""
    aside = to.with_name(f".{to.name}.copied")
    remove(aside)
    own_folder(to.parent).mkdir(parents=True, exist_ok=True)
    shutil.copytree(run.path, aside)
    aside.rename(to)


def cool_down(run: Run, steps: int) -> None:
    """Give an unfinished run its end after so many steps; from its newest checkpoint on its learning rate falls.

    Args:
        run: the run; its files are changed, unless they are already.
        steps: the steps of the whole training, the falling rate included.
    """
    done = checkpoint_step(list_checkpoints(run.checkpoints)[-1])
    training = run.recipe.training
    if training.budget.steps != steps:
        looks = [line for line in run.metrics() if line["kind"] == "validation" and 0 < line["step"] <= done]
        losses = [line["loss"] for line in looks if line["loss"] is not None]
        assert training.budget.steps is not None
        now = training.optimizer.rate * training.schedule.factor(done, training.budget.steps, losses)
        falling = {"kind": "trapezoid", "warmup": 0.0, "cooldown": (steps - done) / steps}
        changes = {"training.schedule": falling, "training.optimizer.lr": now, "training.budget": {"steps": steps}}
        decay, optimizer = training.decay_schedule, training.optimizer
        if decay is not None and isinstance(optimizer, DecayConfig):  # which stays what it is now
            factor = decay.factor(done, training.budget.steps, losses)
            changes |= {
                "training.decay_schedule": None,
                "training.optimizer.weight_decay": optimizer.decay * factor,
            }
        # The recipe first: with the number of steps in the other file a half-written change is noticed.
        run.replace_recipe(run.recipe.changed(changes))
    if run.environment.get("steps") != steps:
        budget = f"steps={steps}"
        course = [*run.environment.get("budgets", []), {"from_step": done, "budget": budget, "steps": steps}]
        run.replace_environment({**run.environment, "budget": budget, "steps": steps, "budgets": course})
