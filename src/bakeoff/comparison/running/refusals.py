"""Recipes of a plan that cannot be, which are all named in one refusal."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from typing import Any, TypeVar

from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.display.wording import quoted, quoted_list
from bakeoff.errors import UserError

T = TypeVar("T")


def of_each(labels: Iterable[str], make: Callable[[str], T], where: str = "") -> dict[str, T]:
    """What is made of each recipe, by label.

    Args:
        labels: the labels.
        make: a function of a label.
        where: the beginning of a refusal: a task, a corpus; left out: a single refusal is raised as it is.

    Raises:
        UserError: recipes are refused; all of them are named, those that are refused for one reason together.
    """
    made: dict[str, T] = {}
    refused: dict[str, list[str]] = {}
    for label in labels:
        try:
            made[label] = make(label)
        except UserError as error:
            last = str(error)  # `of_recipe` may have named the recipe already
            refused.setdefault(last.removeprefix(_beginning(label)), []).append(label)
    if not refused:
        return made
    if not where and len(refused) == 1 and all(len(those) == 1 for those in refused.values()):
        raise UserError(last)
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
        raise UserError(f"{_beginning(label)}{error}") from None


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


def _complete(recipe: Any, plan: RecipePlan) -> tuple[Any, Any]:
    """A recipe with the tokenizer that its text is prepared with."""
    return recipe.model_dump(mode="json"), plan.own_tokenizer


def _beginning(label: str) -> str:
    return f"recipe {label}: "
