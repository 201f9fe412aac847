"""A grid: every combination of the levels of its factors, each of which becomes a recipe of the plan."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from bakeoff.config import Config
from bakeoff.overrides import overlap

Level = Mapping[str, Any]
"""The values that a level sets, by dotted key of a recipe."""

Factors = Annotated[dict[str, list[Any] | dict[str, dict[str, Any]]], BeforeValidator(lambda grid: named_levels(grid))]
"""The levels of each factor: values of the recipe's key that the factor is named after, or names with what they set."""

MOST_CELLS = 256
"""The most cells of a grid, far more than anybody trains."""

VAGUE = ("kind", "format", "width", "rate")
"""Last parts of keys that say too little without the part above them."""

RECIPE = "recipe"
"""The factor of a plan's grid over several recipes that says which of them."""


class Cell(NamedTuple):
    """A combination of levels, one of each factor."""

    grid: str
    """The name of the grid, with which its recipes' labels begin."""
    levels: dict[str, str]
    """The name of the level of each factor, by the factor's title."""
    values: dict[str, Any]
    """The values that all these levels set, by dotted key."""

    @property
    def name(self) -> str:
        """The levels in words: share all, embedding width 64."""
        return ", ".join(f"{title} {level}" for title, level in self.levels.items() if title != RECIPE)


class GridFacts(Config):
    """A grid of a comparison: its factors, and the recipe of each cell."""

    name: str
    """The grid's name; the name of its recipe, or of the plan's grid over several."""
    factors: dict[str, list[str]]
    """The names of the levels of each factor, by the factor's title, in the plan's order."""
    cells: dict[str, dict[str, str]]
    """The level of each factor, by the label of the cell's recipe."""


def cells_of(grid: str, factors: Factors) -> list[Cell]:
    """All cells of a grid, the last factor's level changing fastest.

    Args:
        grid: the name of the grid.
        factors: the levels of each factor.

    Raises:
        ValueError: a factor or a level without a name, a factor without several levels, two levels of one name, two
            factors that set the same key, or more cells than `MOST_CELLS`.
    """
    titled = _titles(factors)
    if RECIPE in titled.values():
        raise ValueError(f"a factor called {RECIPE} would be taken for the recipe itself; give it another name")
    levels = {titled[key]: _levels(key, each) for key, each in factors.items()}
    if not all(name.strip() for name in (*factors, *(each for of_factor in levels.values() for each in of_factor))):
        raise ValueError("a factor or a level without a name")
    _refuse_overlap(factors)
    count = 1
    for each in levels.values():
        count *= len(each)
    if count > MOST_CELLS:
        raise ValueError(f"{count:,} cells, each of them a recipe to train; {MOST_CELLS} are the most")
    cells = []
    for names in itertools.product(*levels.values()):
        chosen = dict(zip(levels, names, strict=True))
        values = {key: value for title, name in chosen.items() for key, value in levels[title][name].items()}
        cells.append(Cell(grid, chosen, values))
    return cells


def named_levels(grid: Any) -> Any:
    """A grid as a plan has it, with names of levels as texts, which YAML takes for numbers or truth values."""
    if not isinstance(grid, Mapping):
        return grid
    return {
        str(key): {level_name(str(key), name): sets for name, sets in levels.items()}
        if isinstance(levels, Mapping)
        else levels
        for key, levels in grid.items()
    }


def keys_of(factors: Factors) -> Iterator[str]:
    """The dotted keys that a grid sets."""
    for key, levels in factors.items():
        yield from dict.fromkeys(each for level in _levels(key, levels).values() for each in level)


def _levels(key: str, levels: list[Any] | dict[str, dict[str, Any]]) -> dict[str, Level]:
    """What each level of a factor sets, by the level's name."""
    if isinstance(levels, Mapping):
        named: dict[str, Level] = {**levels}
    else:
        names = [level_name(key, value) for value in levels]
        named = {name: {key: value} for name, value in zip(names, levels, strict=True)}
        if len(named) < len(names):
            raise ValueError(f"{key}: two levels are called '{max(names, key=names.count)}'")
    if len(named) < 2:
        raise ValueError(f"{key}: a factor has two levels at least; what is to be the same belongs under `set`")
    return named


def level_name(key: str, value: Any) -> str:
    """The name of a value as a level: none, true, 64."""
    if value is None or isinstance(value, bool):
        return "none" if value is None else str(value).lower()
    if isinstance(value, list) and not any(isinstance(each, list | Mapping) for each in value):
        return " ".join(level_name(key, each) for each in value)
    if isinstance(value, list | Mapping):
        raise ValueError(
            f"{key}: a level that is no single value wants a name: NAME: {{{key}: ...}} in place of the list"
        )
    return str(value)


def _titles(factors: Factors) -> dict[str, str]:
    """The factors in words, each the last part of its key; of like ones as many parts as tell them apart."""
    titles = {}
    for key in factors:
        parts = key.split(".")
        others = [other.split(".") for other in factors if other != key]
        count = 1
        while count < len(parts) and (
            parts[-count] in VAGUE or parts[-count].isdigit() or any(parts[-count:] == each[-count:] for each in others)
        ):
            count += 1
        titles[key] = " ".join(parts[-count:]).replace("_", " ")
    return titles


def _refuse_overlap(factors: Factors) -> None:
    """Raise a ValueError if two factors set the same key, or one a key within a section that the other sets."""
    for (one, first), (other, second) in itertools.combinations(factors.items(), 2):
        for key, another in itertools.product(keys_of({one: first}), keys_of({other: second})):
            if overlap(key, another):
                raise ValueError(f"the factors {one} and {other} both set {key}")
