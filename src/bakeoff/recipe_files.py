"""Recipes in files: finding a recipe by name, merging the recipes that it extends, and setting overrides."""

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError, similar
from bakeoff.optimization.averages import in_todays_form
from bakeoff.overrides import TAGS, set_key, set_keys, tag_of
from bakeoff.recipe import Recipe, changes_the_model
from bakeoff.unread_keys import parsed
from bakeoff.yaml_files import parse_yaml, read_yaml


def recipe_names() -> list[str]:
    """The names of the recipes that come with the package."""
    folder = resources.files("bakeoff.recipes")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_recipe(name_or_path: str | Path, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Recipe:
    """A recipe by its name or file, with what it extends merged in and overrides set.

    Args:
        name_or_path: a name from `recipe_names()`, or a YAML file's path.
        overrides: dotted keys to values, or the command line's texts `model.encoder.layers=6`.

    Raises:
        UserError: no such recipe, or an error in it, naming file, key and the nearest valid key.
    """
    where, values = _extended(str(name_or_path))
    values.setdefault("name", Path(where).stem)
    pairs = parsed(overrides)
    if any(key.partition(".")[0] == "extends" for key in pairs):
        raise UserError(f"{where}: --set extends: only a recipe's file can extend another; name that one instead")
    before = copy.deepcopy(values)
    if any(key.startswith("training.budget.") for key in pairs):
        set_key(values, "training.budget", {}, where)  # it has one unit: another one replaces the recipe's
    set_keys(values, pairs, Recipe, where)
    if changes_the_model(pairs) and "published" not in pairs:
        values.pop("published", None)
    schedule = pairs.get("training.schedule")
    warmup_set = "training.schedule.warmup" in pairs or (isinstance(schedule, dict) and "warmup" in schedule)
    if values.get("training", {}) != before.get("training", {}) and not warmup_set:
        _share_of_budget(values, before)
    return Recipe.parse(values, where)


DEEPEST = 200
"""The longest chain of recipes that extend each other."""


def _extended(name_or_path: str) -> tuple[str, dict[str, Any]]:
    """The file of a recipe, and its values merged over those of the recipes that it extends.

    Raises:
        UserError: one of them does not exist, or extends itself through others, or more than DEEPEST in a row.
    """
    where, values = _read(name_or_path)
    return where, _with_bases(_identity(name_or_path), where, values, {}, {})


def _with_bases(
    identity: str,
    where: str,
    values: dict[str, Any],
    above: dict[str, str],
    known: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """The values of a recipe merged over those of the recipes that it extends.

    Args:
        identity: the key of the recipe's file, see `_identity`.
        where: the recipe's name in errors.
        values: the recipe's values.
        above: the names of the recipes that extend this one, by identity; a recipe among them extends itself.
        known: merged values of recipes that were read before, by identity, so that each is read once.

    Raises:
        UserError: see `_extended`.
    """
    if identity in above:
        circle = [*list(above.values())[list(above).index(identity) :], where]
        raise UserError(f"{circle[-2]}: extends goes in a circle: {' -> '.join(circle)}")
    if len(above) >= DEEPEST:
        raise UserError(f"{where}: extends: more than {DEEPEST} recipes, each of which extends the next")
    base, merged = values.pop("extends", None), None
    several = isinstance(base, list) and base
    for each in [] if base is None else base if several else [base]:
        if not isinstance(each, str) or not each:
            wanted = "the name of a recipe, or a .yaml file, or a list of such"
            raise UserError(f"{where}: extends: give {wanted}, not {base!r}")
        source = str(Path(where).parent / each) if _is_file(each) else each
        name = _identity(source)
        if name not in known:
            try:
                read = _read(source)
            except UserError as error:
                raise UserError(f"{where}: extends: {error}") from None
            known[name] = _with_bases(name, *read, {**above, identity: where}, known)
        merged = known[name] if merged is None else _changed(merged, known[name])
    return values if merged is None else _changed(merged, values)


def _identity(name_or_path: str) -> str:
    """A key for a recipe that is equal for all spellings of a file's path."""
    return str(Path(name_or_path).resolve()) if _is_file(name_or_path) else name_or_path


def _changed(base: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe, overridden by the `written` ones of a recipe that extends it."""
    kept = {key: value for key, value in base.items() if key != "name"}
    if changes_the_model(written):
        kept.pop("published", None)
    merged = _merge(kept, written)
    training = written.get("training")
    if isinstance(training, dict) and "budget" in training and not _has(training.get("schedule"), "warmup"):
        _share_of_budget(merged, kept)
    return merged


def _is_file(name_or_path: str) -> bool:
    """Whether a text names a file, and not a recipe of the package."""
    return Path(name_or_path).suffix in (".yaml", ".yml")


def _has(values: Any, key: str) -> bool:
    return isinstance(values, dict) and key in values


def _share_of_budget(values: dict[str, Any], base: dict[str, Any]) -> None:
    """Turn inherited warm-ups in steps into their shares of the old budget, where the recipe has another one."""
    for name in ("schedule", "decay_schedule"):
        try:
            old, new = base["training"], values["training"]
            warmup, steps = old[name]["warmup"], old["budget"]["steps"]
            if old["budget"] != new["budget"] and new[name]["warmup"] == warmup >= 1:
                new[name] = {**new[name], "warmup": warmup / steps}
        except (KeyError, TypeError):  # none of it given: nothing to keep
            continue


def _read(name_or_path: str) -> tuple[str, dict[str, Any]]:
    """The file of a recipe, and the values in the file."""
    path = Path(name_or_path)
    if not _is_file(name_or_path):
        registered = _registered(name_or_path)
        if registered is None:
            if (path / "recipe.yaml").is_file():
                raise UserError(f"{path} is a run; give {path / 'recipe.yaml'}")
            hint = similar(name_or_path, recipe_names())
            raise UserError(f"no recipe '{name_or_path}'{hint} (`bakeoff recipes` lists all; or give a .yaml file)")
        return f"{name_or_path}.yaml", copy.deepcopy(registered)
    if not path.is_file():
        raise UserError(f"{path}: no such recipe file")
    values = read_yaml(path)
    if isinstance(values.get("training"), dict):  # so that one of two files in older form does not hide the other's
        values["training"] = in_todays_form(values["training"])
    return str(path), values


@cache  # many extend the same few
def _registered(name: str) -> dict[str, Any] | None:
    """The values of the package's recipe of that name; None: there is none."""
    resource = resources.files("bakeoff.recipes").joinpath(f"{name}.yaml")
    return parse_yaml(resource.read_text(encoding="utf-8"), f"{name}.yaml") if resource.is_file() else None


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Mappings merged key by key; a mapping of another kind or format replaces the base's."""
    merged = dict(base)
    for key, value in changes.items():
        old = base.get(key)
        if isinstance(value, str) and (tag := tag_of(old)):  # a part by its name alone
            value = {tag: value}
        merged[key] = value
        if isinstance(old, dict) and isinstance(value, dict) and key != "budget":
            same_kind = all(value.get(tag, old.get(tag)) == old.get(tag) for tag in TAGS)
            merged[key] = _merge(old, value) if same_kind else value
    return merged
