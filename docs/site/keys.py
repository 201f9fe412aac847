"""The reference of configs: every key of a recipe, a plan or a task with its docstring, in Markdown."""

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import yaml
from docs.site.commands import in_a_cell, plain
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bakeoff.comparison.planning.plan import Plan
from bakeoff.config import Config, configs_of
from bakeoff.contrastive.config import ContrastConfig
from bakeoff.formats.registry import FORMATS
from bakeoff.models.blocks import BLOCKS
from bakeoff.models.mixers import MIXERS
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.registry import Registry
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.registry import TASKS

ROOTS: dict[str, type[Config]] = {
    "recipe": Recipe,
    "plan": Plan,
    "finetune": FinetuneConfig,
    "contrast": ContrastConfig,
}
"""Configs with all that they contain, by the name that a page says."""

KINDS: dict[str, Registry[Any]] = {
    "mixers": MIXERS,
    "blocks": BLOCKS,
    "formats": FORMATS,
    "objectives": OBJECTIVES,
    "tasks": TASKS,
}
"""Parts that are chosen by a name, by the name that a page says."""

_WORDS: dict[Any, str] = {
    Any: "any value",
    int: "whole number",
    float: "number",
    str: "text",
    bool: "`true` or `false`",
    Path: "path",
}
_BOUNDS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


class Section(NamedTuple):
    """A config where it is documented."""

    config: type[Config]
    title: str
    anchor: str
    level: int


Places = dict[type[Config], str]
"""The address of each config that is documented somewhere, such as recipe.md#model.embedding."""


def sections(marker: str, level: int, anchor: str) -> list[Section]:
    """The sections that stand for `keys NAME` or `kinds NAME`, those of nested configs after those of their parents.

    Args:
        marker: the words of the marker.
        level: the level of the heading above it.
        anchor: the anchor of this heading.
    """
    sort, name = marker.split()
    if sort == "kinds":
        registry = KINDS[name]
        chosen = {config: registry.names(config) for config in registry.values()}
        parts = [Section(config, ", ".join(names), f"{name}-{names[0]}", level + 1) for config, names in chosen.items()]
        return [found for part in parts for found in [part, *_nested(part, set(chosen))]]
    whole = Section(ROOTS[name], "", anchor, level)
    return [whole, *_nested(whole, {ROOTS[name]})]


def _nested(above: Section, known: set[Any]) -> Iterator[Section]:
    """The configs within a config, each once; parts that are chosen by name stand on pages of their own."""
    elsewhere = {config for registry in KINDS.values() for config in registry.values()} | set(ROOTS.values())
    keys: dict[type[Config], list[str]] = {}
    for key, field in above.config.model_fields.items():
        for config in configs_of(field.annotation, field.metadata):
            keys.setdefault(config, []).append(key)
    for config, names in keys.items():
        if config in known | elsewhere:
            continue
        known.add(config)
        kind = _kind(config)
        paths = [f"{above.title}.{name}" if above.title else name for name in names]
        title = ", ".join(paths) + (f": {kind}" if kind else "")
        anchor = "-".join([*([above.anchor] if above.title else []), names[0], *([kind] if kind else [])])
        here = Section(config, title, anchor, min(above.level + 1, 5))
        yield here
        yield from _nested(Section(config, paths[0], anchor, here.level), known)


def _kind(config: type[Config]) -> str:
    """The name of a part that is one of several; empty for all others."""
    field = config.model_fields.get("kind")
    names = get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()
    return str(names[0]) if len(names) == 1 else ""


def markdown(section: Section, places: Places) -> str:
    """A section: its heading, what the config is, and a table of its keys."""
    heading = [f"{'#' * section.level} `{section.title}` {{#{section.anchor}}}"] if section.title else []
    said = [plain(text) for text in inspect.cleandoc(section.config.__doc__ or "").split("\n\n")]
    rows = [_row(name, field, places) for name, field in section.config.model_fields.items()]
    table = ["\n".join(["| key | | values | default |", "|---|---|---|---|", *rows])] if rows else []
    return "\n\n".join([*heading, *said, *table])


def _row(name: str, field: FieldInfo, places: Places) -> str:
    given = _type(field.annotation, field.metadata, places)
    said = plain(field.description or "")
    cells = [f"`{name}`", said, given, _default(field)]
    return f"| {' | '.join(map(in_a_cell, cells))} |"


def _default(field: FieldInfo) -> str:
    """A default as it would stand in a file."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return ""
    if isinstance(value, Config) and (kind := _kind(type(value))):
        return f"`{kind}`"
    if isinstance(value, Config):
        value = value.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(_data(value), default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return f"`{text}`"


def _data(value: Any) -> Any:
    """A value as plain data."""
    if isinstance(value, Config):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, list | tuple):
        return [_data(each) for each in value]
    return value if isinstance(value, int | float | str | dict | NoneType) else str(value)


def _type(annotation: Any, metadata: Sequence[Any], places: Places) -> str:
    """The values that a key may have, in words."""
    for each in metadata:
        if isinstance(each, Registry):
            return _registry(each, places)
    origin, arguments = get_origin(annotation), get_args(annotation)

    def of(part: Any) -> str:
        return _type(part, (), places)

    if origin is Annotated:
        text = _type(arguments[0], [*arguments[1:], *metadata], places)
    elif origin is Literal:
        text = ", ".join(f"`{_literal(value)}`" for value in arguments)
    elif origin in (Union, UnionType):
        alternatives = [_type(part, metadata, places) for part in arguments if part is not NoneType]
        alternatives += ["`null`"] if NoneType in arguments else []
        return " or ".join(dict.fromkeys(alternatives))
    elif origin in (list, tuple, set, frozenset) or origin is Sequence:
        text = f"list of: {of(arguments[0])}"
    elif origin is dict:
        text = f"mapping of {of(arguments[0])} to {of(arguments[1])}"
    elif isinstance(annotation, type) and issubclass(annotation, Config):
        text = _link(annotation, places)
    else:
        text = _WORDS.get(annotation) or getattr(annotation, "__name__", str(annotation))
    return " ".join([text, *(_bounds(metadata) if annotation in (int, float) else ())])


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _link(config: type[Config], places: Places) -> str:
    """The word for a config as a value, with a link to its keys."""
    word = f"`{kind}`" if (kind := _kind(config)) else "keys"
    return f"[{word}]({places[config]})" if config in places else word


def _registry(registry: Registry[Any], places: Places) -> str:
    """The words for a part of a sort, with a link to the first of them; or those of all parts, where they are few."""
    name = next((name for name, known in KINDS.items() if known is registry), None)
    configs = list(dict.fromkeys(registry.values()))
    if name is None:
        return " or ".join(_link(config, places) for config in configs)
    return f"one of the [{name}]({places[configs[0]]})" if configs[0] in places else f"one of the {name}"


def _bounds(metadata: Sequence[Any]) -> Iterator[str]:
    """The bounds of a number, such as > 0."""
    told = [
        f"{sign} {bound:,}"
        for each in metadata
        for name, sign in _BOUNDS.items()
        if isinstance(bound := getattr(each, name, None), int | float)
    ]
    if told:
        yield ", ".join(told)
