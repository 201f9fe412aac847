"""The runs that a plan's recipes take their first weights from; models from elsewhere are imported as runs."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.plan import Plan, directory_name
from bakeoff.comparison.recipe_plan import RecipePlan, label_of
from bakeoff.comparison.running.engine import Engine
from bakeoff.errors import UserError
from bakeoff.jobs.runner import Say

IMPORTED = "imported"
"""The folder, in a comparison's directory, of models that were imported as runs."""


class Starts:
    """The runs that a plan's recipes start from.

    Args:
        plan: the plan.
        out: the comparison's directory.
        engine: the engine, which imports models and checks that weights fit a recipe.
        say: a function that shows one line before a model is imported.
    """

    def __init__(self, plan: Plan, out: Path, engine: Engine, say: Say) -> None:
        self.plan, self.out, self.engine, self.say = plan, out, engine, say
        self._runs: dict[str, Path] = {}

    def recipe(self, item: RecipePlan) -> Any:
        """The recipe of an entry of the plan; if the entry names a start alone, the recipe of that run.

        Raises:
            UserError: there is no such recipe or run, or the run has not finished, is fine-tuned or cannot be imported.
        """
        if item.start is None:
            return self.engine.recipe(item.recipe, item.set, self.plan.device)
        run = self._run(item.start, item.name)
        if item.recipe == item.start:
            return self.engine.further(run, item.set, self.plan.device)
        return self.engine.recipe(item.recipe, item.set, self.plan.device)

    def facts(self, recipes: Mapping[str, Any]) -> dict[str, StartFacts]:
        """The weights that each recipe takes from its run, by label; recipes with random weights are left out.

        Raises:
            UserError: a run's weights do not fit the recipe, or the corpus has another tokenizer than the run.
        """
        weights = {}
        for item in self.plan.recipes:
            if item.start is None:
                continue
            run, recipe = self._run(item.start, item.name), recipes[item.name]
            try:
                weights[item.name] = self.engine.starting(item.start, run, recipe, self.plan.corpus)
            except UserError as error:
                raise UserError(f"recipe {item.name}: {error}") from None
        return weights

    def _run(self, source: str, label: str) -> Path:
        if source not in self._runs:
            # Two sources may have the same last part.
            mark = hashlib.sha256(source.encode()).hexdigest()[:8]
            directory = self.out / IMPORTED / f"{directory_name(label_of(source))}-{mark}"
            try:
                # A training that goes on is one that started from the same directory, wherever one stands.
                self._runs[source] = self.engine.start(source, directory, self.say).resolve()
            except UserError as error:
                raise UserError(f"recipe {label}: {error}") from None
        return self._runs[source]
