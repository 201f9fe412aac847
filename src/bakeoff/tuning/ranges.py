"""The values that a search may give a recipe's keys: `KEY=RANGE`, read and checked before anything is trained."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from bakeoff.config import Config
from bakeoff.errors import UserError, similar
from bakeoff.overrides import within
from bakeoff.recipe import Recipe
from bakeoff.yaml_files import parse_value

RATE = "training.optimizer.lr"
"""The key of the learning rate, which every search has."""

DECAY = "training.optimizer.weight_decay"
"""The key of the weight decay, where recipes may have a rule in place of a number."""

OVER = "--over"
"""The command line's option for ranges, as errors name it."""

RATE_FACTOR = 8.0
"""The learning rate is searched from the recipe's value divided by this factor to the value times the factor. With an
even number of trials the lower end is one trial nearer, so that the recipe's value is one of the spread values."""

LOGARITHMIC_FROM = 10.0
"""Ratio of positive bounds from which on a range is searched on a logarithmic scale."""

UNSEARCHED = (
    *("name", "paper", "published", "tokenizer"),
    *(f"training.{key}" for key in ("budget", "average_last", "compile", "precision", "micro_batch")),
    "training.activation_checkpointing",
    *(f"training.{key}" for key in ("validations", "validation_examples", "checkpoint_minutes")),
    *(f"training.{key}" for key in ("save_at", "early_stopping")),
)
"""Keys that cannot be searched, because all trials are to be run and measured alike."""

Over = Mapping[str, str | Sequence[Any]] | Sequence[str]
"""Ranges by keys, lists of values among them, or the command line's texts `KEY=RANGE`."""

_DIGITS = 3
"""Significant digits of the values between a range's bounds; more digits make no difference and are hard to read."""


class Range(Config):
    """The values that one key may have: numbers between two bounds, or a list of values."""

    key: str
    """The dotted key."""
    text: str
    """The range as it was given."""
    own: Any
    """The recipe's own value of the key."""
    low: float | None = None
    """The lowest number; None for a list."""
    high: float | None = None
    """The highest number; None for a list."""
    logarithmic: bool = False
    """Whether the logarithms of the numbers are spread evenly, and not the numbers."""
    whole: bool = False
    """Whether the numbers are whole."""
    choices: list[Any] = Field(default=[])
    """The values of a list; empty for numbers between bounds."""

    @property
    def size(self) -> float:
        """The number of values in the range; infinite for numbers that are not whole."""
        if self.low is None or self.high is None:
            return len(self.choices)
        return round(self.high) - round(self.low) + 1 if self.whole else 1 if self.low == self.high else math.inf

    @property
    def checked(self) -> list[Any]:
        """Values on which a recipe is checked instead of all: every value of a list, or the two bounds."""
        return self.choices if self.low is None else [self._number(self.low), self._number(self.high or 0.0)]

    @property
    def all(self) -> list[Any]:
        """Every value of a list or of a range of whole numbers, in order."""
        return self.choices if self.low is None else [self._number(self.low + i) for i in range(int(self.size))]

    @property
    def has_own(self) -> bool:
        """Whether the recipe's own value is in the range."""
        if self.low is None or self.high is None:
            return self.own in self.choices
        return is_number(self.own) and self.low <= self.own <= self.high

    @property
    def middle(self) -> Any:
        """The recipe's own value if the range has it, else the value in the middle of the range."""
        return self.own if self.has_own else self.at(0.5)

    def at(self, position: float) -> Any:
        """The value at a position between 0, the lowest or first value, and 1, the highest or last."""
        if self.low is None or self.high is None:
            return self.choices[min(int(position * len(self.choices)), len(self.choices) - 1)]
        if position <= 0 or position >= 1:
            return self._number(self.low if position <= 0 else self.high)
        if self.logarithmic:
            value = math.exp(math.log(self.low) + position * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + position * (self.high - self.low)
        return self._number(value if self.whole else min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high))

    def place(self, number: float) -> float:
        """The position of a number in the range, from 0 to 1."""
        assert self.low is not None
        assert self.high is not None
        if self.low == self.high:
            return 0.5
        scale = math.log if self.logarithmic else float
        return (scale(number) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def _number(self, value: float) -> float | int:
        return round(value) if self.whole else float(value)


def parse_ranges(over: Over, recipe: Recipe, trials: int, option: str = OVER) -> list[Range]:
    """The ranges of a search: the learning rate's first, then those that were asked for.

    Args:
        over: `KEY=1e-4..1e-2` or `KEY=relu,gelu`; numbers are spread evenly, or their logarithms where the bounds are
            positive and 10 times apart or more; they are whole where the recipe's own value is.
        recipe: the recipe whose keys are searched.
        trials: number of trials.
        option: name of the ranges' origin in errors.

    Raises:
        UserError: the recipe has no such key, or a key cannot be searched, or a range is malformed.
    """
    values = with_a_number(recipe).model_dump(mode="json")
    ranges: dict[str, Range] = {}
    for key, written in _pairs(over):
        text = written if isinstance(written, str) else ",".join(json.dumps(value) for value in written)
        where = f"{option} {key}={text}"
        if key in ranges:
            raise UserError(f"{where}: this key is given twice")
        if any(within(key, each) for each in UNSEARCHED):
            raise UserError(f"{where}: cannot be searched: all trials are run and measured alike; give it with --set")
        recipe_value = _recipe_value(values, key, where, recipe.name)
        ranges[key] = _range(key, text, written, recipe_value, where)
    if RATE not in ranges:
        ranges = {RATE: _around(recipe.training.optimizer.rate, trials), **ranges}
    for key in ranges:
        if below := [other for other in ranges if other.startswith(f"{key}.")]:
            raise UserError(f"{option} {key}: sets {below[0]}, which is searched, too; give the keys below it")
    return [ranges.pop(RATE), *ranges.values()]


def with_a_number(recipe: Recipe) -> Recipe:
    """The recipe with a learning rate that is a number and does not follow the training's length, as in every trial."""
    return recipe.changed({RATE: recipe.training.optimizer.rate})


def _around(rate: float, trials: int) -> Range:
    """The range of the learning rate where none is asked for."""
    downwards, upwards = (trials - 1) // 2, max(1, trials // 2)
    ratio = RATE_FACTOR ** (1 / upwards)
    low, high = (float(f"{rate * ratio**power:.{_DIGITS}g}") for power in (-downwards, upwards))
    low = min(low, rate)
    return Range(key=RATE, text=f"{low!r}..{high!r}", own=rate, low=low, high=high, logarithmic=True)


def _pairs(over: Over) -> Iterator[tuple[str, str | Sequence[Any]]]:
    if isinstance(over, Mapping):
        yield from over.items()
        return
    for each in over:
        key, separator, text = each.partition("=")
        if not separator or not key.strip() or not text.strip():
            raise UserError(f"{OVER} {each}: expected KEY=RANGE, such as {RATE}=1e-4..1e-2")
        yield key.strip(), text.strip()


def _recipe_value(values: Any, key: str, where: str, name: str) -> Any:
    """The recipe's value at a key."""
    known = list(_keys(values))
    if key not in known:
        same = [each for each in known if each.endswith(f".{key}")]
        hint = f"; did you mean '{same[0]}'?" if same else similar(key, known)
        raise UserError(f"{where}: {name} has no such key{hint}")
    for part in key.split("."):
        values = values[int(part)] if isinstance(values, list) else values[part]
    return values


def _keys(values: Any, above: str = "") -> Iterator[str]:
    """The dotted keys of nested mappings and lists, inner keys after those above them."""
    if isinstance(values, Mapping | list):
        for name, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            yield f"{above}{name}"
            yield from _keys(value, f"{above}{name}.")


def _range(key: str, text: str, written: str | Sequence[Any], value: Any, where: str) -> Range:
    bounds = re.fullmatch(r"(.+?)\.\.(.+)", text) if isinstance(written, str) else None
    if bounds is None:
        choices = parse_value(f"[{text}]", where) if isinstance(written, str) else list(written)
        if not choices:
            raise UserError(f"{where}: give at least one value")
        if key == RATE and any(isinstance(choice, Mapping) for choice in choices):
            raise UserError(f"{where}: give numbers; a search has trials of one length, for which a rate is a number")
        if any(choices.count(choice) > 1 for choice in choices):
            raise UserError(f"{where}: a value is given twice")
        return Range(key=key, text=text, own=value, choices=choices)
    low, high = (parse_value(part, where) for part in bounds.groups())
    if not (is_number(low) and is_number(high) and low <= high):
        raise UserError(f"{where}: expected the lowest and the highest number, such as 1e-4..1e-2, or values 1,2,3")
    if key == DECAY and isinstance(value, Mapping):
        value = None  # a rule, which is none of the numbers between
    if value is not None and not is_number(value):
        raise UserError(
            f"{where}: the recipe has {json.dumps(value)} there, which is no number; list values, as in a,b"
        )
    whole = isinstance(value, int)
    if whole and not (float(low).is_integer() and float(high).is_integer()):
        raise UserError(f"{where}: the recipe has the whole number {value} there; give whole numbers")
    return Range(key=key, text=text, own=value, low=low, high=high, whole=whole, logarithmic=is_logarithmic(low, high))


def searched(ranges: Sequence[Range], key: str) -> bool:
    """Whether the ranges have more than one value for a key."""
    return any(each.key == key and each.size > 1 for each in ranges)


def is_logarithmic(low: float, high: float) -> bool:
    """Whether numbers between these bounds are spread on a logarithmic scale."""
    return low > 0 and high / low >= LOGARITHMIC_FROM


def is_number(value: Any) -> bool:
    """Whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
