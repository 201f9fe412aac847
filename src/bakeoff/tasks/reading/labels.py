"""Labels, tags and choices by name: in one form wherever they come from, so that equal ones are equal."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean


def label_text(value: Any) -> str:
    """A label as text, in NFC with single spaces, as texts are; 1.0 is 1, true is `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean(str(value))


def label_of(value: Any, where: str, column: str) -> str:
    """The label in a cell of a file.

    Args:
        value: the content of the cell.
        where: file and line.
        column: the column's name.

    Raises:
        UserError: the cell is empty, or holds no text, finite number or truth value.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where}: the label is {value}, which is neither a class nor a number (column '{column}')")
    if value is not None and not isinstance(value, str | int | float):
        raise UserError(f"{where}: column '{column}' holds {type(value).__name__} instead of a label")
    label = "" if value is None else label_text(value)
    if not label:
        raise UserError(f"{where}: the label is empty (column '{column}'); every row needs one")
    return label


def by_label(values: Any) -> Any:
    """A mapping by labels, whose keys become text; other values unchanged.

    Raises:
        ValueError: two keys are the same label.
    """
    if not isinstance(values, Mapping):
        return values
    return dict(zip(_different(list(map(label_text, values))), values.values(), strict=True))


def _as_label(value: Any) -> Any:
    return label_text(value) if isinstance(value, str | int | float) else value


def _different(names: list[str]) -> list[str]:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"'{name}' names two labels; keep one")
        seen.add(name)
    return names


LabelName = Annotated[str, BeforeValidator(_as_label)]
"""The name of a class, converted as labels of a file are, so that the number 1 is the class `1`."""

ClassNames = Annotated[list[Annotated[str, AfterValidator(label_text)]], AfterValidator(_different)]
"""The names of all classes of a task, each once."""

ClassWeights = Annotated[dict[LabelName, Annotated[float, Field(gt=0)]], BeforeValidator(by_label)]
"""A weight for each of some classes."""

FEWEST_SCORES = 5
"""The fewest classes for which a remark is made where all names of classes are numbers."""


def on_a_scale(classes: Sequence[str]) -> bool:
    """Whether names of classes look like values of a scale: many numbers, or numbers with decimals."""
    try:
        numbers = [float(name) for name in classes]
    except ValueError:
        return False
    return all(map(math.isfinite, numbers)) and (
        len(numbers) >= FEWEST_SCORES or any(not number.is_integer() for number in numbers)
    )
