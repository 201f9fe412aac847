"""The files of a finished search: the recipe, for a training that may be longer than a trial; results and report."""

import json
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.display.text import visible
from bakeoff.display.wording import budget as budget_words
from bakeoff.display.wording import counted
from bakeoff.durable import write_atomically
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.rate_transfer import transferred
from bakeoff.recipe import Recipe
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.ranges import RATE, searched
from bakeoff.tuning.report import seeds_text, transfer_lines, write_report
from bakeoff.tuning.results import RECIPE, REPORT, RESULTS, RateForBudget, TuningResults


def budget_change(recipe: Recipe, budget: Budget) -> dict[str, Any]:
    """The change of a recipe that gives it a budget; a warm-up in steps keeps its share of them, as in the trials."""
    training = recipe.training
    changes: dict[str, Any] = {"training.budget": budget.model_dump(exclude_none=True)}
    for key, schedule in training.schedules.items():
        if schedule.warmup >= 1 and training.budget.steps is not None:
            changes[f"training.{key}.warmup"] = schedule.rise_share(training.budget.steps)
    return changes


def recipe_for_budget(
    planning: Planning, recipe: Recipe, trial_steps: int, budget: Budget | None
) -> tuple[Recipe, RateForBudget | None]:
    """The recipe of a trial with the budget of a coming training, its rate transferred to that budget.

    Args:
        planning: the plan of the search.
        recipe: the recipe of the trial.
        trial_steps: steps of the trial.
        budget: budget of the coming training; None: unknown, and the recipe says at how many steps its rate was found.

    Returns:
        The recipe, and the transferred rate with its rule; None for the rate where there is no budget.
    """
    optimizer = recipe.training.optimizer
    rate_searched = searched(planning.ranges, RATE)
    if budget is None:
        follows = optimizer.length_exponent is not None and rate_searched
        return recipe.changed({RATE: {"rate": optimizer.rate, "steps": trial_steps}}) if follows else recipe, None
    steps = planning.engine.steps(recipe, budget, planning.corpus, planning.device)
    new = transferred(optimizer.rate, optimizer.length_exponent, steps / trial_steps, rate_searched)
    rate = RateForBudget(budget=str(budget), steps=steps, rate=new.rate, rule=new.rule)
    return recipe.changed({RATE: new.rate, **budget_change(recipe, budget)}), rate


def write_outputs(results: TuningResults, recipe: Recipe, out: Path) -> None:
    """Write recipe.yaml, results.json and report.html, each whole or not at all.

    Args:
        results: results of the search.
        recipe: recipe of the best trial, with the budget of the searched recipe, or with the budget that was asked for
            and the rate transferred to it.
        out: directory of the search.
    """
    write_atomically(out / RECIPE, _comment(results) + recipe.to_yaml())  # without a checksum: people change it
    checksums.forget(out, [REPORT])
    checksums.write(out / RESULTS, results.model_dump_json(indent=2) + "\n")
    write_report(results, recipe, out / REPORT)
    checksums.record(out, [REPORT])


def _comment(results: TuningResults) -> str:
    """Lines of comment on the recipe's search."""
    winner = results.winner
    finished = results.states.count("finished")
    lr = "" if results.transferred is None else f"--set {RATE}={_plain(winner.values[RATE])} "
    lines = [
        f"{results.recipe} with the best values of {counted(len(results.trials), 'trial')} by `bakeoff tune`, of "
        f"{budget_words(results.budget)} each, {finished} of them trained to the end",
        *(
            f"{each.key}: {_plain(winner.values[each.key])}, before {_plain(each.own)}; {each.text}"
            for each in results.ranges
        ),
        f"held-out loss {winner.losses[-1]:.6g} on the corpus {results.corpus_fingerprint}, {seeds_text(results)}",
        *transfer_lines(results),
        f"the best trial again: {lr}--budget steps={winner.steps} --seed {results.seed}"
        + (f" --threads {threads}" if (threads := results.environment.get("threads")) else ""),
    ]
    return "".join(f"# {visible(line)}\n" for line in lines)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
