"""Values at dotted keys, `model.encoder.layers=6`: the command line's `--set`."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from bakeoff.errors import UserError
from bakeoff.yaml_files import parse_value

TAGS = ("kind", "format")
"""Keys that say which config a mapping is."""


def parse_override(text: str, option: str = "--set") -> tuple[str, Any]:
    """Split `model.encoder.layers=6`, given with that option, into key and value, the value read as YAML."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UserError(f"{option} {text}: expected KEY=VALUE")
    return key.strip(), parse_value(value, f"{option} {text}")


def parse_overrides(texts: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """The values of texts such as `model.encoder.layers=6`, given with that option, by their keys.

    Raises:
        UserError: a text is not KEY=VALUE, a key has two values, of which one would have no effect, or a setting (any
            option but --set) has a list or an object with nothing in it, which would be its default without a word.
    """
    given: dict[str, str] = {}
    values: dict[str, Any] = {}
    for text in texts:
        key, value = parse_override(text, option)
        if option != "--set" and value in ([], {}):
            raise UserError(f"{option} {text}: holds no value; give one, or leave the option out for the default")
        if key in values and values[key] != value:
            raise UserError(f"{option} {given[key]}, {option} {text}: the key takes one value; give one of the two")
        given[key], values[key] = text, value
    return values


def within(key: str, section: str) -> bool:
    """Whether a dotted key is a section of a recipe, or lies in it."""
    return key == section or key.startswith(f"{section}.")


def overlap(key: str, other: str) -> bool:
    """Whether two dotted keys are the same, or one lies in the section that the other is."""
    return within(key, other) or within(other, key)


def set_key(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a dotted key in nested mappings and lists; mappings on the way are made where they are absent.

    Raises:
        UserError: the path leads through a value that holds no keys, or a list has no such index.
    """
    node: Any = values
    *path, last = key.split(".")
    for index, part in enumerate([*path, last]):
        here = ".".join(key.split(".")[: index + 1])
        if isinstance(node, list):
            if not part.isdigit() or int(part) >= len(node):
                raise UserError(
                    f"{where}: --set {key}: '{here}' is not a place in a list of {len(node)} (counted from 0)"
                )
            entry: Any = int(part)
        elif isinstance(node, dict):
            entry = part
        else:
            raise UserError(
                f"{where}: --set {key}: '{here}' does not exist, because what is above it holds a single value"
            )
        if index == len(path):
            node[entry] = value
        else:
            if isinstance(node, dict) and node.get(entry) is None:
                node[entry] = {}
            node = node[entry]


def set_keys(values: dict[str, Any], pairs: Mapping[str, Any], model: type[BaseModel], where: str) -> None:
    """Set some dotted keys; a part that gets another kind or format loses those of its old keys that no longer fit.

    A key no longer fits where the new kind does not know it, or does not take its value, a single one or a rule.

    Args:
        values: changed in place.
        pairs: values by dotted keys.
        model: the config that the values are for.
        where: the file or recipe that the values come from, named in the error.

    Raises:
        UserError: as `set_key`.
    """
    pairs = dict(_by_name(key, value, values) for key, value in pairs.items())
    tags = [key for key in pairs if key.rpartition(".")[2] in TAGS]
    before = {key: _at(values, key.split(".")) for key in tags}
    for key, value in pairs.items():
        set_key(values, key, copy.deepcopy(value), where)  # or a later key would change what the caller holds
    turned = [tuple(key.split(".")[:-1]) for key in tags if before[key] != pairs[key]]
    while turned and (inherited := [path for path in _refused(values, model) if path[:-1] in turned]):
        for path in inherited:
            if any(within(key, ".".join(path)) for key in pairs):
                return  # a mistake of the user's, which is to be reported
            del _at(values, path[:-1])[path[-1]]


def _by_name(key: str, value: Any, values: dict[str, Any]) -> tuple[str, Any]:
    """A key and its value; of a part that is set to a name alone the tag and the name, so that its other keys stay."""
    old = _at(values, key.split("."))
    return (f"{key}.{tag}", value) if isinstance(value, str) and (tag := tag_of(old)) else (key, value)


def tag_of(part: Any) -> str | None:
    """The key that names which part it is; None: it has none."""
    return next((tag for tag in TAGS if tag in part), None) if isinstance(part, Mapping) else None


def _at(values: Any, path: Collection[str]) -> Any:
    """The value at a path; None where there is none."""
    for part in path:
        if isinstance(values, list) and part.isdigit() and int(part) < len(values):
            values = values[int(part)]
        elif isinstance(values, dict):
            values = values.get(part)
        else:
            return None
    return values


def _refused(values: dict[str, Any], model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """The paths of keys that a config does not know, one a mapping, and of settings that it does not take."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        for item in error.errors():
            path: tuple[str, ...] = ()
            for part in map(str, item["loc"]):  # which also names the kinds of what stands on the way
                if _at(values, (*path, part)) is not None:
                    path = (*path, part)
            if item["type"] == "unknown_key":
                yield (*path, item["ctx"]["key"])
            elif item["type"] != "missing" and _is_setting(_at(values, path)):
                yield path


def _is_setting(value: Any) -> bool:
    """Whether a value is a setting of a part: a single one or a rule in a mapping, and no part or list of parts."""
    return not isinstance(value, list) and (not isinstance(value, dict) or tag_of(value) is None)
