"""The base of every config: a pydantic model that refuses unknown keys and says which key was probably meant."""

import json
import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from bakeoff.errors import UserError, nearest

LARGEST = 2**63 - 1
"""The largest whole number of a field; tensors and generators count no further."""


class Config(BaseModel):
    """A frozen config whose fields are documented by the docstring below each of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in values:
                if key not in cls.model_fields:
                    hint = nearest(str(key), cls.model_fields)
                    raise PydanticCustomError("unknown_key", "unknown key '{key}'{hint}", {"key": key, "hint": hint})
        return values

    @model_validator(mode="before")
    @classmethod
    def _refuse_odd_numbers(cls, values: Any) -> Any:
        """Pydantic takes true for 1, and whole numbers of any length, which no tensor has as a size."""
        if isinstance(values, Mapping):
            for key, value in values.items():
                types = _plain_types(cls.model_fields[key].annotation) if key in cls.model_fields else set()
                odd = None
                if isinstance(value, bool) and types & {int, float} and bool not in types:
                    odd = f"a number is wanted, not {str(value).lower()}"
                elif isinstance(value, int) and int in types and abs(value) > LARGEST:
                    odd = f"{value} is beyond the whole numbers of 64 bits"
                if odd:
                    raise PydanticCustomError("odd_number", "{key}: {odd}", {"key": key, "odd": odd})
        return values

    @classmethod
    def parse(cls, values: Any, where: str) -> Self:
        """Validate values read from a file or the command line.

        Args:
            values: what was read, usually a mapping.
            where: the file, recipe or option that the values come from, named in the error.

        Raises:
            UserError: one line with every key that is wrong and the nearest valid one.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UserError(f"{where}: {'; '.join(_describe(item, values) for item in _relevant(error))}") from None


def _plain_types(annotation: Any) -> set[Any]:
    """The types that a field's annotation allows at its top, those of unions among them."""
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return {each for part in get_args(annotation) for each in _plain_types(part)}
    return {annotation}


def _relevant(error: ValidationError) -> list[Any]:
    """The errors without those of a union's alternatives that want keys where none are given, or something else."""
    items = error.errors()
    shapes: dict[str, Any] = {"list_type": Mapping, "int_type": Mapping}
    shapes |= dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), (list, int, str))
    return [item for item in items if not isinstance(item["input"], shapes.get(item["type"], ()))] or items


def _describe(item: Any, values: Any) -> str:
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
    if item["type"] == "missing":
        message = "this key is required"
    elif item["type"] == "union_tag_invalid":
        context = item["ctx"]
        path.append("kind" if "kind" in context["discriminator"] else "format")
        known = re.findall("'([^']+)'", context["expected_tags"])
        message = f"there is no '{context['tag']}'{nearest(context['tag'], known)}"
    elif item["type"] == "too_short":
        given, least = item["ctx"]["actual_length"], item["ctx"]["min_length"]
        message = f"{given or 'nothing'} given; give at least {least}"
    elif item["type"] not in ("unknown_key", "odd_number", "value_error", "union_tag_not_found"):
        message = f"{message[0].lower()}{message[1:]}, not {node!r}"
    return f"{'.'.join(path)}: {message}" if path else message


def differing(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The dotted keys at which two trees of plain data differ, with both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*new, *(name for name in old if name not in new)]:
            yield from differing(old.get(name), new.get(name), f"{key}.{name}" if key else name)
    elif json.loads(json.dumps(old)) != json.loads(json.dumps(new)):
        yield key, old, new
