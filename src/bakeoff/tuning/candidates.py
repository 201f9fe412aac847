"""The values of a search's trials, all of them known before the first trial begins.

For one range of numbers the values are a grid with the recipe's own value; for several ranges they are the points of
an additive recurrence, which fill a space more evenly than random points. Bergstra and Bengio 2012, "Random search for
hyper-parameter optimization", section 3, measured that evenness is decisive for so few trials.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.tuning.ranges import OVER, Range

_DRAWS = 100
"""The most points per trial that are drawn, because points may round to values that are taken already."""

Values = dict[str, Any]


def candidates(ranges: Sequence[Range], trials: int) -> list[Values]:
    """The values of each trial; the first has the recipe's own values, or the middle of a range that lacks its value.

    There are fewer than `trials` where the ranges hold fewer values.
    """
    sizes = math.prod(each.size for each in ranges)
    first = {each.key: each.middle for each in ranges}
    if sizes <= trials:
        drawn: Iterator[Values] = _all(ranges)
    elif len(ranges) == 1 and not ranges[0].choices:
        drawn = iter(_grid(ranges[0], trials))
    else:
        drawn = _spread(ranges, trials)
    distinct: list[Values] = [first]
    for values in islice(drawn, _DRAWS * trials):
        if len(distinct) < trials and values not in distinct:
            distinct.append(values)
    return distinct


def _all(ranges: Sequence[Range]) -> Iterator[Values]:
    for values in product(*(each.all for each in ranges)):
        yield dict(zip([each.key for each in ranges], values, strict=True))


def _grid(only: Range, trials: int) -> list[Values]:
    """Evenly spread numbers from the middle outwards, without the nearest to it: the first trial has the middle."""
    middle = only.place(only.middle)
    positions = [i / (trials - 1) for i in range(trials)] if trials > 1 else []
    positions = sorted(positions, key=lambda position: (abs(position - middle), position))[1:]
    return [{only.key: only.at(position)} for position in positions]


def _spread(ranges: Sequence[Range], trials: int) -> Iterator[Values]:
    """The points of Roberts's R sequence: x_i = (1/2 + i * (g^-1, g^-2, ..., g^-d)) mod 1, with g^(d+1) = g + 1.

    Roberts 2018, "The unreasonable effectiveness of quasirandom sequences"; for d = 1 g is the golden ratio.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (len(ranges) + 1))
    for i in range(1, _DRAWS * trials):
        yield {each.key: each.at((0.5 + i * ratio**-power) % 1) for power, each in enumerate(ranges, 1)}


def recipe_with(recipe: Recipe, values: Mapping[str, Any], where: str) -> Recipe:
    """The recipe with changed values.

    Raises:
        UserError: the recipe refuses the values; the message begins with `where`.
    """
    try:
        return recipe.changed(values)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def recipes_of(
    recipe: Recipe, ranges: Sequence[Range], value_sets: Sequence[Values], option: str = OVER
) -> list[Recipe]:
    """The recipe of each trial.

    Raises:
        UserError: the recipe refuses a value of a list, an end of a range, or the values of a trial together.
    """
    for each in ranges:
        for value in each.checked:
            recipe_with(recipe, {each.key: value}, f"{option} {each.key}={each.text}: {value}")
    return [recipe_with(recipe, values, f"{option}: {shown(values)}") for values in value_sets]


def shown(values: Mapping[str, Any]) -> str:
    """Values in words, by the last parts of their keys."""
    return ", ".join(f"{short(key)} {written(value)}" for key, value in values.items())


def short(key: str) -> str:
    """The last part of a dotted key."""
    return key.rpartition(".")[2]


def written(value: Any) -> str:
    """A value as a user may write it; floats have four significant digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else "null" if value is None else str(value).replace("'", "")
