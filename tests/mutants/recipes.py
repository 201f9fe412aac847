"""Changes every value of every recipe, one at a time, and asks whether the table of published values notices.

Numbers are doubled (zeros become 1), truths turned round, and a name becomes another one of those that may stand there.
What the recipe's own rules refuse, or what no longer has the published number of parameters, is noticed as well.
Defaults count as values of the recipe: a change of one in the package is a change of all recipes that rely on it.
"""

import argparse
import copy
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.costs import costs_of
from tests.published.table import read_table, recipe_leaves

TABLE = read_table()


def places(node: Any, key: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The way to every value of a recipe, and another value for it."""
    if isinstance(node, BaseModel):
        for name, field in type(node).model_fields.items():
            value = getattr(node, name)
            if isinstance(value, str):
                others = [choice for choice in _choices(field.annotation) if choice != value]
                if others and name != "kind":
                    yield (*key, name), others[0]
            else:
                yield from places(value, (*key, name))
    elif isinstance(node, list | tuple):
        for place, each in enumerate(node):
            yield from places(each, (*key, place))
    elif isinstance(node, dict):
        for name, each in node.items():
            yield from places(each, (*key, name))
    elif isinstance(node, bool):
        yield key, not node
    elif isinstance(node, int | float):
        yield key, node * 2 or 1


def _choices(annotation: Any) -> list[str]:
    """The names that a field may have."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def noticed(recipe: Recipe, way: tuple[str | int, ...], value: Any) -> str:
    """By what a change is noticed, or `survived`."""
    values = copy.deepcopy(recipe.model_dump(mode="json"))
    node = values
    for step in way[:-1]:
        node = node[step]
    node[way[-1]] = value
    try:
        changed = Recipe.parse(values, recipe.name)
        if TABLE.differences(recipe.name, recipe_leaves(changed)):
            return "noticed by the table"
        if recipe.published and changed.published:
            counted = costs_of(changed, changed.published.vocabulary).parameters
            alike = abs(counted / changed.published.parameters - 1) < 0.015
            if alike == bool(changed.published.differs):
                return "noticed by the number of parameters"
    except (UserError, AssertionError):
        return "refused"
    return "survived"


def main() -> int:
    """Print the survivors and a table; 1 if a value of a key that defines a system is among them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, help="so many changes at random; all where absent")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    every = [(recipe, *place) for recipe in map(load_recipe, recipe_names()) for place in places(recipe)]
    if arguments.count is not None:
        every = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    results, survivors = Counter[str](), Counter[str]()
    for recipe, way, value in every:
        result = noticed(recipe, way, value)
        key = ".".join(map(str, way))
        if result == "survived" and key in TABLE.free:
            result = "harmless: a key that defines no system"
        results[result] += 1
        if result == "survived":
            survivors[key] += 1
            print(f"survived: {recipe.name}, {key}: {value}")
    print(f"{len(every)} values of {len(recipe_names())} recipes changed")
    for result, count in results.most_common():
        print(f"{count:7} {result}")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
