"""The runs, and the models that become runs, from which a plan's recipes take their first weights."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.plan import Plan, directory_name
from bakeoff.comparison.recipe_plan import RecipePlan, label_of
from bakeoff.comparison.running.engine import Engine
from bakeoff.errors import UserError

IMPORTED = "imported"
"""The folder of a comparison with the runs that models elsewhere have become."""


class Starts:
    """The runs that a plan's recipes start from.

    Args:
        plan: the plan.
        out: the comparison's directory.
        engine: what imports, and looks whether they fit.
        say: told a line before a model is imported.
    """

    def __init__(self, plan: Plan, out: Path, engine: Engine, say: Callable[[str], None]) -> None:
        self.plan, self.out, self.engine, self.say = plan, out, engine, say
        self._runs: dict[str, Path] = {}

    def recipe(self, item: RecipePlan) -> Any:
        """The recipe of an entry of the plan; where it names none, that of the run which it starts from.

        Raises:
            UserError: no such recipe or run, or the run has not finished, is fine-tuned or cannot be imported.
        """
        if item.start is None:
            return self.engine.recipe(item.recipe, item.set, self.plan.device)
        run = self._run(item.start, item.name)
        if item.recipe == item.start:
            return self.engine.further(run, item.set, self.plan.device)
        return self.engine.recipe(item.recipe, item.set, self.plan.device)

    def facts(self, recipes: Mapping[str, Any]) -> dict[str, StartFacts]:
        """What each recipe takes from the run that it starts from, by label; recipes with random weights are left out.

        Raises:
            UserError: a run's weights do not fit the recipe, or the corpus has another tokenizer than the run.
        """
        found = {}
        for item in self.plan.recipes:
            if item.start is None:
                continue
            run, recipe = self._run(item.start, item.name), recipes[item.name]
            try:
                found[item.name] = self.engine.starting(item.start, run, recipe, self.plan.corpus)
            except UserError as error:
                raise UserError(f"recipe {item.name}: {error}") from None
        return found

    def _run(self, source: str, label: str) -> Path:
        if source not in self._runs:
            # Two sources may have the same last part.
            mark = hashlib.sha256(source.encode()).hexdigest()[:8]
            place = self.out / IMPORTED / f"{directory_name(label_of(source))}-{mark}"
            try:
                # A training that goes on is one that started from the same place, wherever one stands.
                self._runs[source] = self.engine.start(source, place, self.say).resolve()
            except UserError as error:
                raise UserError(f"recipe {label}: {error}") from None
        return self._runs[source]
