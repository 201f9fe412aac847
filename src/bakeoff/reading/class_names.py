"""Columns as the library `datasets` describes them: nested fields, and classes that are stored as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.json_files import json_value
from bakeoff.reading.fields import column_and_keys, within


class NamedField(NamedTuple):
    """A named field of a row, a column or a key within a column, and the names of the field's classes."""

    column: str
    """The column's name."""
    keys: list[str]
    """The keys of nested objects in the column: `translation.de` is `de` of the column `translation`."""
    classes: list[str] | None
    """The names of classes that are stored as numbers; None: the field holds other values."""

    def value(self, stored: Any, file: object, row: int) -> Any:
        """The value of the field for a row's stored value of the column, with classes by name.

        Raises:
            UserError: the stored value has no such keys.
        """
        if self.keys:
            stored = within(stored, self.keys, f"{file}, row {row}", self.column)
        return stored if self.classes is None else _named(stored, self.classes)


def field_of(name: str, names: list[str], features: Mapping[str, Any], where: str, advice: str) -> NamedField:
    """The field with a name.

    Args:
        name: the name that the user gave.
        names: the columns.
        features: the descriptions of columns by `datasets`, see `features_of`; may be empty.
        where: the file, for errors.
        advice: advice for the error about a missing column.

    Raises:
        UserError: there is no such column.
    """
    column, keys = column_and_keys(name, names, where, "column", advice)
    return NamedField(column, keys, None if keys else _class_names(features.get(column)))


def features_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The descriptions of columns by name in a Parquet or Arrow file that `datasets` wrote; empty for other files."""
    try:
        features = json_value((metadata or {}).get(b"huggingface", b"{}").decode())["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def _class_names(feature: Any) -> list[str] | None:
    """The names of classes that a column, or a list in it, stores as numbers; None: it holds other values."""
    if isinstance(feature, list) and len(feature) == 1:
        return _class_names(feature[0])
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        return [str(name) for name in names] if isinstance(names, list) else None
    return _class_names(feature.get("feature"))


def _named(value: Any, names: Sequence[str]) -> Any:
    """The name of a class, or of each class in a list; None for -1, the mark of an unknown class."""
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    if type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else None if value == -1 else value
