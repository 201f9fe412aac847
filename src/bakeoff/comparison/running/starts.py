"""The runs that a plan's recipes take their first weights from; models from elsewhere are imported as runs."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.plan import Plan, directory_name
from bakeoff.comparison.recipe_plan import RecipePlan, label_of, of_seed
from bakeoff.comparison.running.engine import Engine
from bakeoff.config import differing
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
        runs = {seed: self._run(of_seed(item.start, seed), item.name) for seed in self.plan.seeds}
        if item.recipe == item.start:
            recipes = {seed: self.engine.further(run, item.set, self.plan.device) for seed, run in runs.items()}
            return _one_model(recipes, item.name)
        return self.engine.recipe(item.recipe, item.set, self.plan.device)

    def facts(self, recipes: Mapping[str, Any]) -> dict[str, dict[int, StartFacts]]:
        """The weights that each recipe takes from its runs, by label and seed, without those of random weights.

        Raises:
            UserError: a run's weights do not fit the recipe, or the corpus has another tokenizer than the run; or
                several of the runs for each seed have the same weights.
        """
        weights = {}
        for item in self.plan.recipes:
            if item.start is None:
                continue
            try:
                weights[item.name] = self._facts(item.start, item.name, recipes[item.name])
            except UserError as error:
                raise UserError(f"recipe {item.name}: {error}") from None
        return weights

    def _facts(self, start: str, label: str, recipe: Any) -> dict[int, StartFacts]:
        by_source: dict[str, StartFacts] = {}
        taken: dict[str, int] = {}
        facts = {}
        for seed in self.plan.seeds:
            source = of_seed(start, seed)
            if source not in by_source:
                run = self._run(source, label)
                found = by_source[source] = self.engine.starting(source, run, recipe, self.plan.corpus)
                if (other := taken.setdefault(found.weights, seed)) != seed:
                    raise UserError(
                        f"start: the seeds {other} and {seed} have the same weights, and would be counted as two "
                        "pre-trainings; give each its own"
                    )
            facts[seed] = by_source[source]
        return facts

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


def _one_model(recipes: Mapping[int, Any], label: str) -> Any:
    """The recipe of the runs that the seeds of one recipe start from.

    Raises:
        UserError: the runs have other models or objectives.
    """
    (first, recipe), *others = recipes.items()
    values = recipe.model_dump(mode="json")
    for seed, other in others:
        theirs = other.model_dump(mode="json")
        for key in ("model", "input", "objective"):
            for place, one, another in differing(values.get(key), theirs.get(key), key):
                raise UserError(
                    f"recipe {label}: start: the runs of the seeds {first} and {seed} are of other recipes: {place} is "
                    f"{one} in one, {another} in the other"
                )
    return recipe
