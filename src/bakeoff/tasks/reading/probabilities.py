"""Probabilities of classes in a cell of a labelled file, from which training learns in place of a single class."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.tasks.reading.labels import label_text

SUM_WITHIN = 1e-3
"""The most by which probabilities may miss the sum 1; they are divided by their sum."""


def probabilities_of(value: Any, where: str, column: str) -> dict[str, float]:
    """The probability of each class in a cell, `{"good": 0.9, "bad": 0.1}`; their sum is 1.

    Args:
        value: the content of the cell.
        where: file and line.
        column: the column's name.

    Raises:
        UserError: the cell holds something else, a number that is no probability, or numbers with another sum.
    """
    if not isinstance(value, Mapping) or not value:
        raise UserError(f"{where}: column '{column}' has to hold a probability for each class, as a JSON object")
    found = {label_text(name): number for name, number in value.items()}
    for name, number in found.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
            raise UserError(f"{where}: column '{column}': '{name}' has no probability from 0 to 1")
    total = math.fsum(found.values())
    if abs(total - 1) > SUM_WITHIN:
        raise UserError(f"{where}: column '{column}': the probabilities have the sum {total:.4g}, not 1")
    return {name: number / total for name, number in found.items()}


def in_order(probabilities: Mapping[str, float], classes: Sequence[str]) -> NDArray[np.float32]:
    """(C,) the probabilities in the order of the classes; 0 for those that are not named."""
    return np.array([probabilities.get(name, 0.0) for name in classes], dtype=np.float32)
