"""Resuming a training: everything stays as it was begun, but for the budget, which may change."""

from shlex import quote
from typing import Any

from bakeoff.config import with_defaults
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.rules import OF_TRAINING, changes_since
from bakeoff.runs.run import Run
from bakeoff.same_settings import require_same
from bakeoff.training.averaging import snapshot_file, snapshot_steps
from bakeoff.training.teachers import require_same_teachers
from bakeoff.unfinished import ELSEWHERE


def require_same_request(run: Run, request: dict[str, Any]) -> None:
    """Refuse to resume a run with other settings than it was begun with.

    Args:
        run: the run.
        request: recipe, seed, corpus and origin of the training that is asked for now.

    Raises:
        UserError: one of them differs; the message names it.
    """
    before, now = (_compared(each) for each in (run.environment, request))
    # An older run may have recorded another tokenizer than the corpus's; the corpus is the same, and its tokenizer too.
    before["tokenizer"] = now["tokenizer"]
    if run.environment["corpus"]["fingerprint"] == request["corpus"]["fingerprint"]:
        before["corpus"] = now["corpus"]  # wherever it stands now
    if "teachers" in request:
        require_same_teachers(run, request["teachers"])
        if (begun := before["training"]["distillation"]) is not None:
            begun["teachers"] = now["training"]["distillation"]["teachers"]
    require_same(run.path, before, now, f"--resume goes on with the same; {ELSEWHERE}")


def _compared(request: dict[str, Any]) -> dict[str, Any]:
    """What a resumed training has to share with its beginning, by the words with which an error names it."""
    corpus = request["corpus"]
    return {
        "seed": request["seed"],
        "first weights": request.get("origin") or "random",
        "corpus": f"{corpus['path']} ({corpus['fingerprint'][:8]})",
        **with_defaults(request["recipe"], Recipe),
    }


def older_rules(run: Run) -> list[str]:
    """Rules that have changed since an unfinished run was begun, in the words that follow `begun before`.

    They are noted in the run, because a recipe that is written anew does not tell them any more.
    """
    known: list[str] = run.environment.get("begun_before", [])
    changes = changes_since(run.written_recipe, run.environment, OF_TRAINING)
    if not run.finished and (new := [change for change in changes if change not in known]):
        known = [*known, *new]
        run.replace_environment({**run.environment, "begun_before": known})
    return known


def changes_budget(run: Run, budget: Budget) -> bool:
    """Whether a run is resumed with another budget than it was begun with.

    True also for a run that was killed between the two files that a change of budget writes.
    """
    steps = run.environment.get("steps")
    return str(budget) != run.environment["budget"] or steps not in (None, run.recipe.training.budget.steps)


def with_budget(run: Run, budget: Budget, steps: int) -> list[str]:
    """Give an unfinished run another number of steps, from its newest checkpoint on.

    The warm-up keeps its steps; after it the schedule is that of a training of the new number of steps.

    Args:
        run: the run; its files are changed.
        budget: the budget that was asked for.
        steps: the steps that the budget pays for.

    Returns:
        Lines for people on the effect on the learning rate.

    Raises:
        UserError: the run is past that step already, or its schedule cannot follow.
    """
    if run.finished:
        raise UserError(
            f"{run.path}: --budget {budget}: the run has finished, and its optimizer is gone; start another one from "
            f"its weights: --from {quote(str(run.path))}"
        )
    checkpoints = list_checkpoints(run.checkpoints)
    done = checkpoint_step(checkpoints[-1]) if checkpoints else 0
    old, training = run.recipe.training.budget.steps, run.recipe.training
    assert old is not None
    where = f"{run.path}: --budget {budget} is {steps:,} steps"
    if steps <= done:
        raise UserError(f"{where}, and the run has taken {done:,}; give more, or end it as it is: --finish-now")
    if (moving := run.recipe.moves_with_the_steps) and steps != old:
        raise UserError(
            f"{where} in place of {old:,}: {moving[0]} depends on the share of all steps that is done, so it cannot be "
            "moved; --resume without --budget, or --finish-now"
        )
    kept = [step for step in snapshot_steps(steps, training.average_last) if step <= done]
    if missing := [step for step in kept if not snapshot_file(run, step).is_file()]:
        raise UserError(
            f"{where}: its average of the last weights needs those after step {missing[0]:,}, which were not kept; "
            "give a larger budget"
        )
    changed = run.recipe.changed({"training.budget": {"steps": steps}})
    # The recipe first: with the number of steps in the other file a half-written change is noticed.
    run.replace_recipe(changed)
    course = [*run.environment.get("budgets", []), {"from_step": done, "budget": str(budget), "steps": steps}]
    run.replace_environment({**run.environment, "budget": str(budget), "steps": steps, "budgets": course})
    looks = [line for line in run.metrics() if line["kind"] == "validation" and 0 < line["step"] <= done]
    losses = [line["loss"] for line in looks if line["loss"] is not None]
    before, after, last = (
        training.optimizer.rate * training.schedule.factor(*position, losses)
        for position in ((done, old), (done, steps), (steps - 1, steps))
    )
    rate = f"stays {before:.3g}" if before == after else f"goes from {before:.3g} to {after:.3g}"
    return [
        f"{steps:,} steps in place of {old:,}, from step {done:,} on: there the learning rate {rate}, and it ends at "
        f"{last:.3g} (schedule {training.schedule.kind})"
    ]
