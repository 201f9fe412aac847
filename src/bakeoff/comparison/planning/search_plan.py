"""Shares of a budget, and the search of each recipe's values before its training."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from bakeoff.config import Config


def share(value: Any) -> float:
    """A share of a budget as a fraction: 3 % is 0.03.

    Raises:
        ValueError: it is no share above 0 and up to 100 %.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    if match is None or not 0 < float(match[1]) <= 100:
        raise ValueError(f"{value!r} is no share of a pre-training's budget above 0 and up to 100 %, such as 10 %")
    return float(match[1]) / 100


Share = Annotated[float, BeforeValidator(share)]


class SearchPlan(Config):
    """The search of each recipe's values before its training."""

    over: dict[str, str | list[Any]] = Field(default={})
    """Ranges or lists of values by dotted key, as for `bakeoff tune --over`; the learning rate is always searched."""
    trials: int = Field(default=8, ge=2)
    """Maximum number of trials of each recipe."""
    seeds: int = Field(default=1, ge=1, le=99)
    """Number of seeds of each trial; the trial's loss is the mean over them."""
    budget: str = "10 %"
    """The length of a whole trial, as a share of one pre-training's budget."""

    @field_validator("over", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {str(key): each if isinstance(each, str | list) else [each] for key, each in value.items()}

    @field_validator("budget", mode="before")
    @classmethod
    def _percent(cls, value: Any) -> str:
        return f"{100 * share(value):g} %"

    @property
    def share(self) -> float:
        """The length of a whole trial as a fraction of one pre-training's budget, such as 0.1."""
        return float(self.budget.removesuffix(" %")) / 100
