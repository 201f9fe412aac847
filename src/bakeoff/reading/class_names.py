"""Columns as the library `datasets` describes them: fields within fields, and classes that are stored as numbers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.errors import UserError
from bakeoff.reading.fields import existing


class NamedField(NamedTuple):
    """The field of a row that a name means: a column, or a key within one, and the names of its classes."""

    column: str
    """The column's name."""
    keys: list[str]
    """The keys of objects within each other there: `translation.de` is `de` of the column `translation`."""
    classes: list[str] | None
    """The names of the classes that are stored as numbers; None: something else is stored."""

    def value(self, stored: Any, file: object, row: int) -> Any:
        """What a row of a file means by what it stores in the column.

        Raises:
            UserError: nothing stands under the keys.
        """
        if self.keys:
            stored = _within(stored, self.keys, f"{file}, row {row}", self.column)
        return stored if self.classes is None else _named(stored, self.classes)


def field_of(name: str, names: list[str], features: Mapping[str, Any], where: str, advice: str) -> NamedField:
    """The field that a name means.

    Args:
        name: the name that the user gave.
        names: the columns.
        features: what `datasets` says of columns, see `features_of`; may be empty.
        where: named in errors.
        advice: what to do where there is no such column.

    Raises:
        UserError: there is no such column.
    """
    column, keys = _column_and_keys(name, names, where, advice)
    return NamedField(column, keys, None if keys else _class_names(features.get(column)))


def _column_and_keys(name: str, names: list[str], where: str, advice: str) -> tuple[str, list[str]]:
    """The column that a name means, and the keys within it: `translation.de` is `de` of the column `translation`.

    Raises:
        UserError: there is no such column.
    """
    column, *keys = name.split(".")
    if name in names or not keys or column not in names:
        return existing(name, names, where, "column", advice), []
    return column, keys


def _within(value: Any, keys: Sequence[str], where: str, name: str) -> Any:
    """What stands under some keys of objects within each other.

    Raises:
        UserError: there is nothing.
    """
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            here = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
            raise UserError(f"{where}: nothing stands under '{key}' of '{name}' (here: {here[:80]})")
        value = value[key]
    return value


def features_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The columns that a file of Parquet or Arrow was written from, where `datasets` has written it; else none."""
    try:
        found = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _class_names(feature: Any) -> list[str] | None:
    """The names of the classes that a column, or a list in it, has as numbers; None where it holds something else."""
    if isinstance(feature, list) and len(feature) == 1:
        return _class_names(feature[0])
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        return [str(name) for name in names] if isinstance(names, list) else None
    return _class_names(feature.get("feature"))


def _named(value: Any, names: Sequence[str]) -> Any:
    """A class, or each of a list, by its name; nothing for -1, by which a class that is not known is marked."""
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    if type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else None if value == -1 else value
