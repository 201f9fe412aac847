"""The points of a training at which its weights are kept as runs, in steps, tokens, words, epochs or shares."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from pydantic import Field, PositiveInt, field_validator

from bakeoff.config import Config
from bakeoff.errors import UserError, nearest
from bakeoff.optimization.budget import UNIT_CUTOFF, parse_amount

MOST_POINTS = 1000
"""The most points of one unit; each is a file as large as the weights."""

_RANGE = re.compile(r"(?P<first>.+?)\.\.(?P<last>.+):(?P<apart>.+)")


class SavePoint(NamedTuple):
    """One point of a training at which its weights are kept."""

    unit: str
    """steps, tokens, words, epochs or shares."""
    amount: float
    """The amount of that unit that is done."""

    def __str__(self) -> str:
        """The point as `--save-at` takes it, such as words=1M."""
        return f"{self.unit}={amount_text(self.amount)}"

    @property
    def folder(self) -> str:
        """The name of the folder of its run, such as words-1M."""
        return f"{self.unit}-{amount_text(self.amount)}"


class SavePoints(Config):
    """Points at which a training's weights are kept, in one unit or several.

    An entry is a number or a text such as 5M, or a range FIRST..LAST:EVERY, such as 1M..10M:1M.
    """

    steps: list[PositiveInt] = Field(default=[])
    """After so many steps."""
    tokens: list[PositiveInt] = Field(default=[])
    """After the first step by which so many tokens were seen, padding not counted."""
    words: list[PositiveInt] = Field(default=[])
    """After the first step by which so many words were seen, those between white space; see `Budget`."""
    epochs: list[float] = Field(default=[])
    """After the first step by which so many passes over the training text were made."""
    shares: list[float] = Field(default=[])
    """After that share of all steps, above 0 and at most 1."""

    @field_validator("*", mode="before")
    @classmethod
    def _expanded(cls, values: Any) -> Any:
        entries = values if isinstance(values, list | tuple) else [values]
        numbers = [number for entry in entries for number in _numbers(entry)]
        if len(numbers) > MOST_POINTS:
            raise ValueError(f"{len(numbers):,} points are more than {MOST_POINTS:,}")
        return sorted(set(numbers)) if all(isinstance(number, int | float) for number in numbers) else numbers

    @field_validator("epochs", "shares")
    @classmethod
    def _above_zero(cls, values: list[float]) -> list[float]:
        if wrong := [value for value in values if not value > 0]:
            raise ValueError(f"{wrong[0]:g} is not above 0")
        return values

    @field_validator("shares")
    @classmethod
    def _at_most_all(cls, values: list[float]) -> list[float]:
        if wrong := [value for value in values if value > 1]:
            raise ValueError(f"{wrong[0]:g} is more than the whole training, 1")
        return values

    @classmethod
    def parse_texts(cls, texts: Sequence[str], option: str = "--save-at") -> Self:
        """Read `words=1M..10M:1M,20M`, or several such texts; `option` names them in errors.

        Raises:
            UserError: a text is no list of points.
        """
        points: dict[str, list[str]] = {}
        for text in texts:
            unit, separator, amounts = text.partition("=")
            if not separator:
                raise UserError(
                    f"{option} {text}: give a unit and points, such as words=1M..10M:1M,20M or steps=100,1000"
                )
            if unit not in cls.model_fields:
                raise UserError(f"{option} {text}: unknown unit '{unit}'{nearest(unit, cls.model_fields, UNIT_CUTOFF)}")
            points.setdefault(unit, []).extend(amounts.split(","))
        return cls.parse(points, option)

    def points(self) -> list[SavePoint]:
        """All points, unit by unit."""
        return [SavePoint(unit, amount) for unit in type(self).model_fields for amount in getattr(self, unit)]


def amount_text(amount: float) -> str:
    """An amount in the shortest form that `--save-at` takes: 1M, 2.5k, 1234, 0.1."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if amount >= size and float(text := f"{amount / size:.6g}") * size == amount:
            return f"{text}{letter}"
    return f"{amount:.12g}" if amount < 1e12 else str(round(amount))


def _numbers(entry: Any) -> list[Any]:
    """The numbers of an entry; what is neither a number nor a text of one is left to the field's type.

    Raises:
        ValueError: the text is no number and no range.
    """
    if isinstance(entry, bool):
        raise ValueError(f"a number is wanted, not {str(entry).lower()}")
    if not isinstance(entry, str):
        return [entry]
    if (match := _RANGE.fullmatch(entry.strip())) is None:
        return [_number(entry, entry)]
    first, last, apart = (_number(text, entry) for text in match.groups())
    if first > last:
        raise ValueError(f"'{entry}' ends before it begins")
    count = int((last - first) / apart + 1e-9) + 1
    if count > MOST_POINTS:
        raise ValueError(f"'{entry}' has {count:,} points, more than {MOST_POINTS:,}")
    return [_whole(first + apart * index) for index in range(count)]


def _number(text: str, entry: str) -> float:
    number = parse_amount(text)
    if number is None:
        raise ValueError(f"'{entry}' is not a positive number such as 1000 or 5M, nor a range such as 1M..10M:1M")
    return _whole(number)


def _whole(number: float) -> float:
    """The number as an integer if it is one, within rounding."""
    number = float(f"{number:.12g}")
    return int(number) if number.is_integer() else number
