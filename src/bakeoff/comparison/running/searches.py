"""The searches of a comparison: one for each recipe, all of them before the first training."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.results import Failure
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.planned_training import PlannedTraining, with_teachers
from bakeoff.comparison.running.refusals import of_recipe
from bakeoff.display.wording import quoted
from bakeoff.durable import own_folder
from bakeoff.errors import Diverged, UserError
from bakeoff.jobs.job import Workers
from bakeoff.jobs.runner import Say
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.rate_transfer import transferred
from bakeoff.tuning.ranges import RATE, searched
from bakeoff.tuning.results import REPORT, RESULTS, TuningResults
from bakeoff.unfinished import SEARCH

LEAST_STEPS = 50
"""Fewest steps of a whole trial: shorter trials hardly tell learning rates apart, and cannot be stopped early."""


@dataclass(frozen=True)
class PlannedSearch(PlannedTraining):
    """The search of one recipe's values."""

    recipe: RecipePlan

    @property
    def title(self) -> str:
        """The search in words: searching bert."""
        return f"searching {quoted(self.recipe.name)}"


def directory_of_search(out: Path, recipe: RecipePlan) -> Path:
    """The directory of a recipe's search."""
    return out / "searches" / directory_name(recipe.name)


class Searches:
    """The searches of a plan.

    Args:
        plan: the plan.
        out: the comparison's directory.
        recipes: the recipes before their searches, by label.
        corpora: the corpus of each recipe and its fingerprint, by label.
        engine: the engine that runs searches.
        say: a function that shows one line of progress.
        starts: the runs that recipes start from, by label and seed; a search starts from that of the plan's first seed.
        teachers: the digests of the runs that recipes learn from, by label and name.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path,
        recipes: Mapping[str, Any],
        corpora: Mapping[str, tuple[Path, str]],
        engine: Engine,
        say: Say,
        starts: Mapping[str, Mapping[int, StartFacts]],
        teachers: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.starts = {name: of_seeds[plan.seeds[0]] for name, of_seeds in starts.items()}
        self.plan, self.out, self.engine, self.say = plan, out, engine, say
        self.recipes = dict(recipes)
        self.corpora = {name: path for name, (path, _) in corpora.items()}
        self.budgets = {item.name: plan.budget_of(item) for item in plan.recipes}
        self.planned: dict[str, PlannedSearch] = {}
        for item in plan.recipes:
            if plan.search is None or not item.search or item.as_it_is:
                continue
            if item.name in self.starts and self.starts[item.name].grow is not None:
                raise UserError(
                    f"recipe {quoted(item.name)}: a start that grows is not searched; give it `search: false`"
                )
            settings = {
                "search": plan.search.model_dump(mode="json"),
                "recipe": recipes[item.name].model_dump(mode="json"),
                "start": self.starts[item.name].weights if item.name in self.starts else None,
                "budget": self.budgets[item.name],
                "corpus": corpora[item.name][1],
                "device": plan.device,
                **with_teachers(teachers.get(item.name, {})),
            }
            self.planned[item.name] = PlannedSearch(directory_of_search(out, item), REPORT, settings, item)

    def require_possible(self) -> None:
        """Refuse recipes that cannot be searched as the plan says, before anything is written or trained.

        Raises:
            UserError: a key that a recipe does not have, a value that it refuses, or trials that are too short.
        """
        if self.plan.search is None:
            return
        for name, planned in self.planned.items():
            if (planned.directory / SEARCH).is_file():
                continue
            budget = Budget.parse_text(self.budgets[name])
            if budget.minutes is not None:
                self.say(f"measuring the speed of {name}")
            with of_recipe(name):
                steps = self.engine.search_steps(
                    self.recipes[name],
                    self.corpora[name],
                    over=self.plan.search.over,
                    trials=self.plan.search.trials,
                    budget=budget,
                    device=self.plan.device,
                )
            if steps * self.plan.search.share < LEAST_STEPS:
                raise UserError(f"recipe {quoted(name)}: search.budget: {_too_short(self.plan.search.budget, steps)}")

    def check(self) -> None:
        """Refuse to go on with a search that was begun with other settings.

        Raises:
            UserError: a search was begun with other settings; the message names the difference.
        """
        for planned in self.planned.values():
            own_folder(planned.directory, self.out)
            planned.check()

    def require_unchanged(self) -> None:
        """Refuse what `check` refuses, and write nothing."""
        for planned in self.planned.values():
            planned.require_unchanged()

    @property
    def waiting(self) -> list[str]:
        """Labels of recipes whose search has not begun or not finished, without the diverged ones."""
        return [name for name, planned in self.planned.items() if not planned.finished and planned.failure is None]

    def run(self, workers: Workers | None = None) -> None:
        """Run the waiting searches; recipes whose trials all diverge are in `failures` afterwards.

        Args:
            workers: processes that train several trials side by side; None: one trial at a time.

        Raises:
            UserError: a search has not finished.
        """
        assert self.plan.search is not None or not self.planned
        for name in self.waiting:
            planned, search = self.planned[name], self.plan.search
            assert search is not None
            planned.begin()
            self.say(planned.title)
            try:
                self.engine.search(
                    self.recipes[name],
                    self.corpora[name],
                    planned.directory,
                    over=search.over,
                    trials=search.trials,
                    seeds=search.seeds,  # from 0 on, whatever the plan's are, so that these may change
                    budget=Budget.parse_text(self.budgets[name]).times(search.share),
                    device=self.plan.device,
                    progress=self.say,
                    workers=workers,
                    start=Path(self.starts[name].run) if name in self.starts else None,
                )
            except Diverged as error:
                planned.fail(str(error))
                self.say(f"{planned.title}: every trial diverged; {name} is left out from here on")
                continue
            if not planned.finished:
                raise UserError(f"{planned.directory}: did not finish; the same command goes on from here")

    @property
    def results(self) -> dict[str, TuningResults]:
        """The results of the finished searches, by label."""
        return {
            name: TuningResults.read(planned.directory / RESULTS)
            for name, planned in self.planned.items()
            if planned.finished
        }

    @property
    def chosen(self) -> dict[str, Any]:
        """The recipes with finished searches, by label, with the values of their best trials.

        The learning rate is transferred to the whole budget by the rule of `bakeoff.optimization.rate_transfer`.
        """
        assert self.plan.search is not None or not self.planned
        return {name: self._chosen(name, results) for name, results in self.results.items()}

    def _chosen(self, name: str, results: TuningResults) -> Any:
        assert self.plan.search is not None
        recipe = self.recipes[name].changed(results.winner.values)
        optimizer, steps = recipe.training.optimizer, results.winner.steps
        before = self.starts[name].trained if name in self.starts else 0
        ratio = (before + steps / self.plan.search.share) / (before + steps)
        rate_searched = searched(results.ranges, RATE)
        return recipe.changed({RATE: transferred(optimizer.rate, optimizer.length_exponent, ratio, rate_searched).rate})

    @property
    def failures(self) -> dict[str, Failure]:
        """The failures of recipes whose trials all diverged, by label."""
        return {
            name: Failure(recipe=name, seed=0, training="every trial of its search", message=message)
            for name, planned in self.planned.items()
            if (message := planned.failure) is not None
        }


def _too_short(share: str, steps: int) -> str:
    """The error text for trials of fewer than `LEAST_STEPS` steps; `steps` are those of a whole pre-training."""
    if steps < LEAST_STEPS:
        return (
            f"a whole pre-training has {steps:,} steps, and a trial needs {LEAST_STEPS} at least; give a larger "
            "budget, or leave `search` out"
        )
    least = math.ceil(1000 * LEAST_STEPS / steps) / 10
    return (
        f"{share} of the {steps:,} steps of a pre-training are less than {LEAST_STEPS}, the fewest of a trial; give "
        f"{least:g} % at least"
    )
