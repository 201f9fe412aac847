"""What is wrong with values for a config, in one line for whoever wrote them: pydantic's errors in a reader's words."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from bakeoff.errors import nearest, shown, similar

_LONGEST = 200
"""The most characters of a wrong value that an error repeats."""

_PROBLEMS = 10
"""The most problems that an error names."""

_PLACES = 3
"""The most places that an error names for a misplaced key."""

_KEYS = "input should be keys with values (KEY: VALUE)"
_WANTED = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), _KEYS),
    "path_type": "input should be a path",
    **dict.fromkeys(("list_type", "tuple_type", "named_tuple_type"), "input should be a list ([VALUE, VALUE])"),
    "int_parsing": "input should be a valid integer",
    "float_parsing": "input should be a valid number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "input should be true or false"),
}
"""What is wanted, by the kind of pydantic's error, where its words speak of Python."""

Paths = Callable[[], list[tuple[str, ...]]]
"""A function that gives the paths of all keys that a config has."""


def in_one_line(items: Sequence[Any], values: Any, paths: Paths) -> str:
    """The first of pydantic's errors, see `_describe`, and the number of the others."""
    more = [f"and {len(items) - _PROBLEMS:,} more"] if len(items) > _PROBLEMS else []
    return "; ".join([*dict.fromkeys(_describe(item, values, paths) for item in items[:_PROBLEMS]), *more])


def relevant(items: Sequence[Any]) -> Sequence[Any]:
    """The errors without those of a union's alternatives that want keys where none are given, or something else."""
    shapes: dict[str, Any] = {"list_type": Mapping, "int_type": Mapping, "float_type": Mapping}
    shapes |= dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), (list, int, float, str, type(None)))
    return [item for item in items if not isinstance(item["input"], shapes.get(item["type"], ()))] or items


def _describe(item: Any, values: Any, paths: Paths) -> str:
    """One pydantic error as `path: message`; the tags of unions, which no file contains, are left out of the path."""
    path: list[str] = []
    node = values
    for i, part in enumerate(item["loc"]):
        in_list = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if in_list or (isinstance(node, Mapping) and part in node):
            node = node[part]
        elif i < len(item["loc"]) - 1 or item["type"] != "missing":
            continue
        path.append(str(part))
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "unknown_key":
        message += _unlike(item["ctx"]["key"]) + _hint(item["ctx"]["key"], item["ctx"]["known"], path, paths())
    elif item["type"] == "missing":
        message = "this key is required"
    elif item["type"] == "union_tag_not_found":
        path.append(_tag(item))
        message = "this key is required"
    elif item["type"] == "union_tag_invalid":
        context = item["ctx"]
        path.append(_tag(item))
        known = re.findall("'([^']+)'", context["expected_tags"])
        message = f"there is no '{_shortened(context['tag'])}'{nearest(context['tag'], known)}"
    elif item["type"] == "too_short":
        count, least = item["ctx"]["actual_length"], item["ctx"]["min_length"]
        message = f"{count or 'nothing'} given; give at least {least}"
    elif item["type"] not in ("unknown_key", "retired_key", "odd_number", "value_error"):
        message = _WANTED.get(item["type"], f"{message[0].lower()}{message[1:]}")
        if item["type"] == "literal_error":
            message = re.sub(r"\b(True|False)\b", lambda match: match[0].lower(), message)
        message = f"{message}, not {_shortened(_as_written(node))}"
        if item["type"] == "string_type" and isinstance(node, bool | int | float):
            message += f'; quote it, "{_as_written(node)}"'
        elif item["type"] == "string_type" and node is None:
            message += "; in YAML a text that begins with # is quoted"
    return f"{'.'.join(path)}: {message}" if path else message


def _as_written(value: Any) -> str:
    """A value as files have it: null, true, [1, 2]."""
    if value is None or isinstance(value, bool | list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return shown(value, _LONGEST + 1)


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."


def _tag(item: Any) -> str:
    """The key that says which part of a union is meant, in an error about it."""
    return "kind" if "kind" in item["ctx"]["discriminator"] else "format"


def _hint(key: str, known: list[str], path: list[str], paths: list[tuple[str, ...]]) -> str:
    """A hint at the key that was probably meant by one that a part of a config does not know.

    Args:
        key: the key.
        known: the part's keys.
        path: the part's path in the config.
        paths: all keys of the whole config.
    """
    if close := similar(key, known, cutoff=0.75):
        return close
    same = [path_of_key for path_of_key in paths if path_of_key[-1] == key]

    def near(path_of_key: tuple[str, ...]) -> tuple[int, int]:
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path_of_key, path, strict=False)))
        return -common, len(path_of_key)

    names = list(dict.fromkeys(_place(path_of_key) for path_of_key in sorted(same, key=near)))[:_PLACES]
    return f"; did you mean {' or '.join(names)}?" if names else nearest(key, known)


def _unlike(key: str) -> str:
    """The signs of a key that may look like others, or like none: every key of a config is in ASCII."""
    signs = [f"U+{ord(sign):04X}" for sign in dict.fromkeys(key) if not sign.isascii() or not sign.isprintable()]
    return f", which has {' and '.join(signs)} in it" if signs else ""


def _place(path: tuple[str, ...]) -> str:
    """The path of a key as a hint names it; the key alone would read as the one that is misplaced."""
    return f"'{'.'.join(path)}'" + " at the top" * (len(path) == 1)
