"""The spending of pre-trainings against the planned budget."""

from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from bakeoff.comparison.reporting.unequal import budget_text, equal_budgets
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.display.wording import listed, quoted
from bakeoff.optimization.budget import Budget

TOLERATED = 0.1
"""Distance of a spent share from 1 above which a warning is given."""


class Spending(NamedTuple):
    """Spent shares of the budget, each a mean over seeds; 1 is the planned budget."""

    clock: float
    """The share in the budget's own unit; of a budget in minutes, by the clock."""
    work: float | None
    """The share of a budget in minutes by work, which other processes do not slow down; None: unknown or no minutes."""

    @property
    def fair(self) -> float:
        """The share by which recipes are compared: by work where that is known, else by `clock`."""
        return self.clock if self.work is None else self.work


def spending(results: Results, entry: RecipeEntry) -> Spending:
    """The share of the budget that a recipe's pre-trainings spent, by the clock and by work."""
    planned, runs, corpus = (
        Budget.parse_text(results.budget.of(entry.label)),
        entry.runs,
        entry.corpus or results.corpus,
    )
    if planned.minutes is None:
        unit, amount = next((unit, amount) for unit, amount in planned if amount is not None)
        if unit == "epochs":
            assert corpus.tokens is not None  # facts without them are older than such budgets
            unit, amount = "tokens", amount * corpus.tokens
        if unit == "words":
            assert corpus.words_per_token is not None
            unit, amount = "tokens", amount / corpus.words_per_token
        return Spending(fmean(getattr(run, unit) for run in runs) / amount, None)
    clock = fmean(run.seconds for run in runs) / (60 * planned.minutes)
    seconds = results.budget.seconds_per_step.get(entry.label)
    work = results.budget.work_seconds_per_step.get(entry.label)
    done = [run.work_seconds for run in runs if run.work_seconds is not None]
    if seconds is None or not work or len(done) < len(runs):
        return Spending(clock, None)
    return Spending(clock, fmean(done) * seconds / work / (60 * planned.minutes))


def spending_cautions(results: Results) -> Iterator[str]:
    """Warnings where recipes spent more or less than was planned."""
    spent = {entry.label: spending(results, entry) for entry in results.recipes if entry.runs}
    equal = equal_budgets(results)
    of = f"the {budget_text(results)} that were planned" if equal else "what was planned for each"
    unequal = {label: each.fair for label, each in spent.items() if abs(each.fair - 1) > TOLERATED}
    if unequal:
        how = " by the work done" if any(each.work is not None for each in spent.values()) else ""
        advantage = "Recipes with more have an advantage"
        yield f"The budget was not spent as planned: {_listed(unequal)} of {of}{how}. {advantage}."
        return
    clock = {label: each.clock for label, each in spent.items() if each.work is not None}
    if any(abs(share - 1) > TOLERATED for share in clock.values()):
        yield (
            f"By the clock, {_listed(clock)} of {of} were spent, for the machine had other work or another speed. "
            "Steps are planned by work and not by the clock, so this favours no recipe."
        )


def _listed(shares: dict[str, float]) -> str:
    return listed([f"{quoted(label)} {100 * share:.0f} %" for label, share in shares.items()])
