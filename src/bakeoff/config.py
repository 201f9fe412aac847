"""The base of every config: a pydantic model that refuses unknown keys and says which key was probably meant."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from bakeoff.errors import UserError, shown
from bakeoff.mistakes import in_one_line, relevant
from bakeoff.registry import Registry

_DEEPEST = 12
"""The deepest nesting of a config, in levels."""

LARGEST = 2**63 - 1
"""The largest whole number of a field; tensors and generators count no further."""


def require_seed(given: object) -> None:
    """Refuse a seed of Python that the command line would refuse; None stands for a default.

    Raises:
        UserError: it is no int from 0 to `LARGEST`.
    """
    whole = isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= LARGEST
    if given is not None and not whole:
        raise UserError(f"seed: {shown(given)} is no int from 0 to {LARGEST}; give one such as 0")


class Config(BaseModel):
    """A frozen config whose fields are documented by the docstring below each of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    read_before: ClassVar[tuple[str, ...]] = ()
    """Keys that a file may have, but that are dealt with before its values are checked."""
    scales_with_width: ClassVar[frozenset[str]] = frozenset()
    """Keys whose numbers belong to a model's width: a narrower copy of the model, such as the generator of rtd, has the
    same share of each of them."""
    retired: ClassVar[Mapping[str, Any]] = {}
    """Keys that older versions had, with the values at which they did nothing. A key with its value here is left out,
    so that complete recipes of older versions can still be read."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of older versions by their present names, for files that Bakeoff writes."""

    if not TYPE_CHECKING:  # type checkers know the fields

        def __init__(self, /, **values: Any) -> None:
            """Make the config from Python.

            Raises:
                UserError: one line with every key that is wrong, as for a file.
            """
            try:
                super().__init__(**values)
            except ValidationError as error:
                name = type(self).__name__
                raise UserError(f"{name}: {self.mistakes(error.errors(), values)}") from None

        # A config within another one is validated with it, so that the error says where it stands.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key, off in cls.retired.items():
                if values.get(key, off) != off:
                    text = "{key}: this version has it no more; leave it out, or use an older one"
                    raise PydanticCustomError("retired_key", text, {"key": key})
            values = {key: value for key, value in values.items() if key not in cls.retired}
            for key in values:
                if key not in cls.model_fields:
                    context = {"key": str(key), "known": [*cls.model_fields, *cls.read_before]}
                    raise PydanticCustomError("unknown_key", "unknown key '{key}'", context)
        return values

    @model_validator(mode="before")
    @classmethod
    def _refuse_odd_numbers(cls, values: Any) -> Any:
        """Refuse true instead of 1, and whole numbers beyond `LARGEST`, both of which pydantic would take."""
        if isinstance(values, Mapping):
            for key, value in values.items():
                inside = isinstance(value, list | tuple)
                for number in value if inside else (value,):
                    if isinstance(number, int) and (odd := _odd(number, _types_of(cls, key, inside))):
                        raise PydanticCustomError("odd_number", "{key}: {odd}", {"key": key, "odd": odd})
        return values

    @model_validator(mode="before")  # pydantic calls the last one first
    @classmethod
    def _take_older_names(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and cls.renamed:
            older = {name: now for name, now in cls.renamed.items() if name in values and now not in values}
            return {older.get(key, key): value for key, value in values.items()}
        return values

    @classmethod
    def parse(cls, values: Any, where: str, strict: bool | None = None) -> Self:
        """Validate values read from a file or the command line.

        Args:
            values: the values, usually a mapping.
            where: the file, recipe or option that the values come from, named in the error.
            strict: refuse a text instead of a number, and 1 instead of a truth value.

        Raises:
            UserError: one line with every key that is wrong, and the nearest valid one, or where that key belongs.
        """
        try:
            return cls.model_validate(values, strict=strict)
        except ValidationError as error:
            raise UserError(f"{where}: {cls.mistakes(error.errors(), values)}") from None

    @classmethod
    def mistakes(cls, errors: Sequence[Any], values: Any) -> str:
        """Pydantic's errors on values for this config in one line: every key that is wrong, and what is wanted."""
        return in_one_line(relevant(errors), values, lambda: list(_paths(cls, values)))


class PartConfig(Config):
    """The config of a part that is chosen by its name."""

    examples: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    """Settings with which a plugin's part is tested; each has a value for every field without a default."""


class Record(BaseModel):
    """The content of a file that Bakeoff itself writes; keys of other versions are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, use_attribute_docstrings=True)

    @classmethod
    def check(cls, values: dict[str, Any], where: str) -> dict[str, Any]:
        """The values, once every required key is there with a value of its type.

        Raises:
            UserError: one line with the file and every key that is wrong.
        """
        try:
            cls.model_validate(values)
        except ValidationError as error:
            problems = in_one_line(error.errors(), values, list)
            raise UserError(f"{where}: not what Bakeoff writes there: {problems}") from None
        return values


def _plain_types(annotation: Any) -> set[Any]:
    """The types that a field's annotation allows, with the members of a union one by one."""
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return {each for part in get_args(annotation) for each in _plain_types(part)}
    return {annotation}


def _odd(number: int, types: set[Any]) -> str | None:
    """What is odd about a whole number, or a truth value, for a field of these types; None: nothing is."""
    if isinstance(number, bool):
        wanted = bool(types & {int, float}) and bool not in types
        return f"a number is wanted, not {str(number).lower()}" if wanted else None
    return f"{number} is beyond the whole numbers of 64 bits" if int in types and abs(number) > LARGEST else None


@cache  # asked for every number of every config
def _types_of(config: type[BaseModel], key: str, inside: bool = False) -> set[Any]:
    """The types that a config's field allows, or those inside of its lists; empty: there is no such field."""
    types = _plain_types(config.model_fields[key].annotation) if key in config.model_fields else set()
    if not inside:
        return types
    lists = [each for each in types if get_origin(each) in (list, tuple)]
    return {part for each in lists for inner in get_args(each) for part in _plain_types(inner)}


def _paths(model: type[Config], values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all keys that a config has, with the kinds of parts that its values choose."""
    for name, field in model.model_fields.items():
        here = (*path, name)
        yield here
        value = values.get(name) if isinstance(values, Mapping) else None
        parts = configs_of(field.annotation, field.metadata)
        absent = value is None and field.default is None
        if not parts or absent or len(here) > _DEEPEST:
            continue
        for i, each in enumerate(value if isinstance(value, list) else [value]):
            below = (*here, str(i)) if isinstance(value, list) else here
            for part in parts:
                if (len(parts) == 1 and not isinstance(each, int | str)) or _chosen(part, each):
                    yield from _paths(part, each, below)


def configs_of(annotation: Any, metadata: Sequence[Any] = ()) -> list[type[Config]]:
    """The configs that a field may hold, alone or in a list."""
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
    for registry in metadata:
        if isinstance(registry, Registry):
            return list(registry.values())
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [config for argument in get_args(annotation) for config in configs_of(argument)]


def _chosen(part: type[Config], values: Any) -> bool:
    """Whether values belong to this config of a union: they name its kind, or no kind where it is the default."""
    if not isinstance(values, Mapping):
        return False
    for tag in ("kind", "format"):
        field = part.model_fields.get(tag)
        if field is not None and get_origin(field.annotation) is Literal:
            return values.get(tag, field.default) in get_args(field.annotation)
    return set(values) <= set(part.model_fields)


def with_defaults(values: Any, config: type[Config]) -> Any:
    """Values that an older version wrote, with keys that were added since at their defaults.

    Values that the config no longer takes are returned unchanged, so that they differ from any of today.
    """
    try:
        return config.parse(values, "").model_dump(mode="json")
    except UserError:
        return values


def differing(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The dotted keys at which two trees of plain data differ, with both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*new, *(name for name in old if name not in new)]:
            yield from differing(old.get(name), new.get(name), f"{key}.{name}" if key else name)
    elif json.loads(json.dumps(old)) != json.loads(json.dumps(new)):
        yield key, old, new
