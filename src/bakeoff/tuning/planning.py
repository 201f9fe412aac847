"""The trials of a search with their values and steps, all of them checked before anything is trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.tuning.candidates import Values, candidates, recipes_of, shown
from bakeoff.tuning.engine import TrialEngine
from bakeoff.tuning.findings import costs
from bakeoff.tuning.halving import evaluations
from bakeoff.tuning.ranges import OVER, Over, Range, parse_ranges, with_a_number
from bakeoff.tuning.results import Trial

COMPARED_UNDER = ("objective", "input")
"""Parts of a recipe that change the held-out loss of the same weights. If a key of theirs is searched, all trials are
measured under the values of the searched recipe."""


@dataclass(frozen=True)
class Planning:
    """The plan of a search: recipe, ranges, corpus, budget, device."""

    recipe: Recipe
    """The recipe whose keys the trials change."""
    ranges: list[Range]
    """The ranges of the searched keys."""
    corpus: str
    """The corpus, as the user names it."""
    budget: Budget
    """Budget of one whole trial."""
    device: str
    """auto, cpu, cuda or mps."""
    engine: TrialEngine = field(default_factory=TrialEngine)
    """The engine that runs the trainings of trials."""
    say: Callable[[str], None] = lambda line: None
    """A function that shows a line before work that takes seconds."""
    option: str = OVER
    """The option that gave the ranges, for errors."""

    @property
    def measured_as(self) -> dict[str, Any]:
        """The parts of the recipe that all trials are measured under; empty: each trial is measured under its own."""
        searched = {each.key.partition(".")[0] for each in self.ranges}
        values = self.recipe.model_dump(mode="json")
        return {key: values[key] for key in COMPARED_UNDER} if searched & {*COMPARED_UNDER} else {}

    def teachers(self, value_sets: Sequence[Values]) -> dict[str, str]:
        """The digest of the weights of each run that trials learn from, by its name."""
        from bakeoff.training.teachers import digests

        return digests(self.recipes(value_sets))

    def recipes(self, value_sets: Sequence[Values]) -> list[Recipe]:
        """The recipe of each trial; see `recipes_of`."""
        return recipes_of(self.recipe, self.ranges, value_sets, self.option)

    def trials(self, value_sets: Sequence[Values]) -> list[Trial]:
        """The trials, one for each set of values, checked against the corpus and with their numbers of steps.

        Raises:
            UserError: a trial cannot be trained on the corpus.
        """
        recipes = self.recipes(value_sets)
        self.engine.check(self.recipe, {}, self.corpus, self.device)  # a mistake in the recipe is no range's fault
        for values in ({each.key: value} for each in self.ranges if costs(each.key) for value in each.checked):
            self._check(self.recipe.changed(values), values)
        groups = [repr({key: value for key, value in values.items() if costs(key)}) for values in value_sets]
        firsts = {group: groups.index(group) for group in groups}  # trials of a group have equal steps
        for index in firsts.values():
            self._check(recipes[index], value_sets[index])
        steps = {}
        for group, index in firsts.items():
            if self.budget.minutes is not None:
                self.say(f"measuring the speed of {shown(value_sets[index])}")
            steps[group] = self.engine.steps(recipes[index], self.budget, self.corpus, self.device)
        each_steps = [steps[group] for group in groups]
        compared = evaluations(self.recipe.training.validations, each_steps)
        return [
            Trial(number=number, values=values, steps=count, evaluations=at)
            for number, (values, count, at) in enumerate(zip(value_sets, each_steps, compared, strict=True))
        ]

    def _check(self, recipe: Recipe, values: Values) -> None:
        try:
            self.engine.check(recipe, self.measured_as, self.corpus, self.device)
        except UserError as error:
            raise UserError(f"{self.option}: {shown(values)}: {error}") from None


def fewest_steps(
    recipe: Recipe, corpus: str, *, over: Over, trials: int, budget: Budget, device: str, option: str
) -> int:
    """The steps of the shortest trial of a search that is planned and checked, but not begun.

    Args:
        recipe: the recipe to be searched.
        corpus: the corpus.
        over: ranges of further keys, as in `tune`.
        trials: the most trials.
        budget: budget of one whole trial.
        device: auto, cpu, cuda or mps.
        option: name of the ranges' origin in errors.

    Raises:
        UserError: a mistake that `tune` would refuse before its first trial.
    """
    recipe = with_a_number(recipe)
    ranges = parse_ranges(over, recipe, trials, option)
    planning = Planning(recipe, ranges, corpus, budget, device, option=option)
    return min(trial.steps for trial in planning.trials(candidates(ranges, trials)))
