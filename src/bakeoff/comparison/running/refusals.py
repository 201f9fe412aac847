"""Recipes of a plan that cannot be, which are all named in one refusal."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any, TypeVar

from bakeoff.comparison.planning.advice import in_a_plan
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.planning.recipe_plan import REMARKS, RecipePlan
from bakeoff.comparison.running.planned import AnyTraining, PlannedTrainings
from bakeoff.display.wording import listed, quoted, quoted_list, verb
from bakeoff.errors import UserError

T = TypeVar("T")

_ASIDE = ("budget", "average_last", "checkpoint_minutes", "save_at")
"""Settings of a recipe's training that its outcome in a comparison does not depend on."""


def of_each(labels: Iterable[str], make: Callable[[str], T], where: str = "") -> dict[str, T]:
    """What is made of each recipe, by label.

    Args:
        labels: the labels.
        make: a function of a label.
        where: the beginning of a refusal: a task, a corpus.

    Raises:
        UserError: recipes are refused; all of them are named, those that are refused for one reason together.
    """
    made: dict[str, T] = {}
    refused: dict[str, list[str]] = {}
    for label in labels:
        try:
            made[label] = make(label)
        except UserError as error:
            reason = str(in_a_plan(error)).removeprefix(_beginning(label))  # `of_recipe` may have named it already
            refused.setdefault(reason, []).append(label)
    if not refused:
        return made
    several = [f"recipe{'s' * (len(those) > 1)} {quoted_list(those)}: {reason}" for reason, those in refused.items()]
    raise UserError(f"{where}{'; '.join(several)}")


@contextmanager
def of_recipe(label: str) -> Iterator[None]:
    """Name the recipe of a plan in what is refused inside.

    Raises:
        UserError: what was refused, with the recipe before it.
    """
    try:
        yield
    except UserError as error:
        raise UserError(f"{_beginning(label)}{in_a_plan(error)}") from None


def require_different(grids: Iterable[GridFacts], recipes: Mapping[str, tuple[Any, RecipePlan]]) -> None:
    """Refuse a grid of which two cells are the same recipe, so that a factor of it says nothing.

    Args:
        grids: the grids.
        recipes: the complete recipes, and what the plan says of them, by label.

    Raises:
        UserError: two cells are the same recipe.
    """
    for grid in grids:
        values = {label: _complete(*recipes[label]) for label in grid.cells}
        for one, other in combinations(grid.cells, 2):
            if values[one] == values[other]:
                raise UserError(f"grid: {quoted(one)} and {quoted(other)} are the same recipe; a level changes nothing")


def require_used(where: str, keys: Iterable[str], idle: Sequence[Mapping[str, str]]) -> None:
    """Refuse settings of fine-tunings that change nothing in any of them.

    Args:
        where: the beginning of a refusal.
        keys: the keys of the settings that are given.
        idle: what changes nothing, by key with the reasons, in each of the fine-tunings; empty: there are none.

    Raises:
        UserError: a setting changes nothing in any.
    """
    for key in keys:
        if idle and all(key in each for each in idle):
            raise UserError(f"{where}finetune: {key} would have no effect: {idle[0][key]}; leave it out")


def require_different_recipes(planned: PlannedTrainings) -> None:
    """Refuse recipes of a plan whose trainings all have the same outcome: one recipe under two names.

    Raises:
        UserError: there are such recipes.
    """
    first, *others = planned.plan.seeds
    known: dict[str, RecipePlan] = {}
    for item in planned.plan.recipes:
        same = known.setdefault(_outcome(planned, item, first), item)
        if same is item or any(_outcome(planned, same, seed) != _outcome(planned, item, seed) for seed in others):
            continue
        idle = sorted(same.changed_otherwise(item))
        changes = verb(len(idle), "changes", "change")
        why = f": {listed(idle)} {changes} nothing that is compared" if idle else ""
        if idle == ["recipe"]:
            why = ": the one says what the other says"
        names = f"{quoted(same.name)} and {quoted(item.name)}"
        raise UserError(f"recipes {names} are the same under two names{why}; leave one of them out")


def _outcome(planned: PlannedTrainings, item: RecipePlan, seed: int) -> str:
    """What decides all that is trained and measured of a recipe with a seed."""
    return "\n".join(map(_decisive, [planned.pretraining(item, seed), *planned.of(item, seed)]))


def _decisive(training: AnyTraining) -> str:
    """What decides a training's outcome, without what a recipe says beside it."""
    return json.dumps([type(training).__name__, _without_remarks(training.decisive)], sort_keys=True)


def _without_remarks(values: Any) -> Any:
    if isinstance(values, Mapping):
        values = {key: _without_remarks(value) for key, value in values.items()}
        if isinstance(recipe := values.get("recipe"), dict):
            training = {key: value for key, value in recipe.get("training", {}).items() if key not in _ASIDE}
            recipe = {key: value for key, value in recipe.items() if key not in ("name", *REMARKS)}
            values["recipe"] = {**recipe, "training": training}
    return values


def _complete(recipe: Any, plan: RecipePlan) -> tuple[Any, Any]:
    """A recipe with the tokenizer that its text is prepared with."""
    return recipe.model_dump(mode="json"), plan.own_tokenizer


def _beginning(label: str) -> str:
    return f"recipe {quoted(label)}: "
