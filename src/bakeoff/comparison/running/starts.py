"""The runs that a plan's recipes take their first weights from; models from elsewhere are imported as runs."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.own_settings import FROM_CHANCE
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.planning.recipe_sources import label_of, of_seed
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.refusals import of_recipe
from bakeoff.comparison.running.texts import Text
from bakeoff.config import differing
from bakeoff.display.wording import quoted
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
        device, changes = self.plan.device, item.of_recipe
        if item.start is None:
            return self._named(item)
        # With random weights in place of a run's, the run says the architecture alone.
        source = item.recipe if item.start == FROM_CHANCE else item.start
        runs = {seed: self._run(of_seed(source, seed), item.name) for seed in self.plan.seeds}
        if item.recipe == source:
            recipes = {seed: self.engine.further(run, changes, device) for seed, run in runs.items()}
            recipe = _one_model(recipes, item.name)
        else:
            recipe = self._named(item)
        if item.grow is None and not item.unshare:
            return recipe
        with of_recipe(item.name):
            return self.engine.reshaped(recipe, item.grow, item.grow_by, item.unshare)

    def _named(self, item: RecipePlan) -> Any:
        """The recipe of a name or a file, changed as the plan says."""
        try:
            return self.engine.recipe(item.recipe, item.of_recipe, self.plan.device)
        except UserError as error:
            for key, value in item.of_recipe.items():
                if isinstance(value, list) and f"{key}: input should be" in str(error):
                    raise UserError(f"{error}; to compare several values, give them under `grid`") from None
            raise

    def run(self, item: RecipePlan) -> Path | None:
        """The run that a recipe starts from, of several the first seed's; None: random weights."""
        if not item.starts_from_a_run:
            return None
        assert item.start is not None
        return self._run(of_seed(item.start, self.plan.seeds[0]), item.name)

    def facts(self, recipes: Mapping[str, Any], texts: Mapping[str, Text]) -> dict[str, dict[int, StartFacts]]:
        """The weights that each recipe takes from its runs, by label and seed, without those of random weights.

        Args:
            recipes: the recipes by label.
            texts: the corpus of each recipe by label.

        Raises:
            UserError: a run's weights do not fit the recipe, or the corpus has another tokenizer than the run; or
                several of the runs for each seed have the same weights.
        """
        weights = {}
        for item in self.plan.recipes:
            if not item.starts_from_a_run:
                continue
            with of_recipe(item.name):
                weights[item.name] = self._facts(item, recipes[item.name], texts[item.name])
        return weights

    def _facts(self, item: RecipePlan, recipe: Any, text: Text) -> dict[int, StartFacts]:
        assert item.start is not None
        corpus = None if item.as_it_is else text.path
        by_source: dict[str, StartFacts] = {}
        taken: dict[str, int] = {}
        facts = {}
        for seed in self.plan.seeds:
            source = of_seed(item.start, seed)
            if source not in by_source:
                run = self._run(source, item.name)
                found = by_source[source] = self.engine.starting(source, run, recipe, corpus, item.grow_by)
                for key in ("grow", "grow_by") if found.grow is None else ():
                    if key in item.model_fields_set:
                        raise UserError(f"{key} would have no effect: {source} has as many layers already")
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
            with of_recipe(label):
                # A training that goes on is one that started from the same directory, wherever one stands.
                self._runs[source] = self.engine.start(source, directory, self.say).resolve()
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
                    f"recipe {quoted(label)}: start: the runs of the seeds {first} and {seed} are of other recipes: "
                    f"{place} is {one} in one, {another} in the other"
                )
    return recipe
