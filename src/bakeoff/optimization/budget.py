"""How long a training lasts: in steps, tokens, words, passes over the text, operations, minutes or hours."""

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.errors import UserError, nearest

_SUFFIXES = {"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}

_UNITS = "steps, tokens, words, epochs, flops, minutes and hours"

UNIT_CUTOFF = 0.7
"""How like a unit a misspelt one has to be: words are no advice for seconds."""

WHOLE = ("steps", "tokens", "words")
"""Units whose amounts are whole numbers."""


def parse_amount(text: str) -> float | None:
    """A positive number in the command line's forms, such as 1000, 5M or 1e15; None: the text is none."""
    match = re.fullmatch(r"([0-9.]+(?:e[+-]?[0-9]+)?)([kmbgt]?)", text.strip().lower().replace("_", ""))
    try:
        number = float(match[1]) * _SUFFIXES[match[2]] if match else math.nan
    except ValueError:
        number = math.nan
    return number if number > 0 and math.isfinite(number) else None


class Budget(Config):
    """The length of a training, given by exactly one of the fields; `hours` are read as 60 minutes each."""

    read_before: ClassVar[tuple[str, ...]] = ("hours",)

    steps: int | None = Field(default=None, gt=0)
    """Optimizer steps."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens seen, padding not counted."""
    words: int | None = Field(default=None, gt=0)
    """Words seen, those between white space: the tokens seen, times the words that the training text has a token."""
    epochs: float | None = Field(default=None, gt=0)
    """Tokens seen, in multiples of the training tokens of the corpus. Where rows overlap or leave text out, some tokens
    are seen more often than others."""
    flops: float | None = Field(default=None, gt=0)
    """Floating-point operations, forward and backward."""
    minutes: float | None = Field(default=None, gt=0, le=1e7)
    """Minutes of training, turned into steps once, by the speed that is measured before."""

    @model_validator(mode="before")
    @classmethod
    def _hours(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("hours") is None:
            return values
        hours, others = values["hours"], {key: value for key, value in values.items() if key != "hours"}
        if names := [name for name in cls.model_fields if others.get(name) is not None]:
            raise ValueError(f"give exactly one of {_UNITS}, not hours, {', '.join(names)}")
        if isinstance(hours, bool) or not isinstance(hours, int | float) or not hours > 0:
            raise ValueError(f"hours: {hours!r} is not a number above 0")
        return {**others, "minutes": 60 * hours}

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        names = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(names) != 1:
            raise ValueError(f"give exactly one of {_UNITS}, not {', '.join(names) or 'none'}")
        return self

    @classmethod
    def parse_text(cls, text: str, option: str = "--budget") -> Self:
        """Read `tokens=5M`, `words=10M`, `epochs=2`, `flops=1e15`, `minutes=10`, `hours=2` or `steps=1000`.

        Raises:
            UserError: the text is no budget.
        """
        name, separator, amount = (part.strip() for part in text.partition("="))
        if not separator:
            raise UserError(f"{option} {text}: give a unit and how many, such as tokens=5M, minutes=10 or steps=1000")
        units = [*cls.model_fields, *cls.read_before]
        if name not in units:
            raise UserError(f"{option} {text}: unknown unit '{name}'{nearest(name, units, UNIT_CUTOFF)}")
        number = parse_amount(amount)
        if number is None:
            raise UserError(f"{option} {text}: '{amount}' is not a positive number such as 1000, 5M or 1e15")
        if name in WHOLE and math.isclose(number, round(number), rel_tol=1e-12):  # 2.3 times a million is below 2300000
            number = round(number)
        return cls.parse({name: number}, f"{option} {text}")

    def times(self, factor: float) -> Self:
        """The budget multiplied by a factor; steps, tokens and words stay whole, and at least one."""
        ((name, amount),) = [(name, amount) for name, amount in self if amount is not None]
        if name in WHOLE:
            return type(self)(**{name: max(1, round(amount * factor))})
        return type(self)(**{name: float(f"{amount * factor:.6g}")})

    def __str__(self) -> str:
        """The text that `parse_text` reads."""
        return next(f"{name}={value}" for name in type(self).model_fields if (value := getattr(self, name)) is not None)

    def steps_for(
        self,
        tokens_per_step: float,
        flops_per_step: float,
        seconds_per_step: float | None = None,
        text_tokens: float | None = None,
        words_per_token: float | None = None,
    ) -> int:
        """The number of optimizer steps that the budget pays for, at least one.

        Args:
            tokens_per_step: mean number of tokens in a batch.
            flops_per_step: floating-point operations of a step.
            seconds_per_step: the measured time of a step; needed for a budget in minutes only.
            text_tokens: tokens that are read in a pass over the text; needed for a budget in epochs only.
            words_per_token: words that the training text has a token; needed for a budget in words only.
        """
        if self.steps is not None:
            return self.steps
        if self.tokens is not None:
            return max(1, round(self.tokens / tokens_per_step))
        if self.words is not None:
            assert words_per_token is not None
            return max(1, round(self.words / (tokens_per_step * words_per_token)))
        if self.epochs is not None:
            assert text_tokens is not None
            return max(1, round(self.epochs * text_tokens / tokens_per_step))
        if self.flops is not None:
            return max(1, round(self.flops / flops_per_step))
        assert self.minutes is not None
        assert seconds_per_step is not None
        return max(1, int(self.minutes * 60 / seconds_per_step))
