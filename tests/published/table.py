"""The table of published values, read from the YAML files beside this module; `common.yaml` says how it is written.

It is written from the papers and their published code, not from the recipes, and its inheritance is its own, so that
what changes in a recipe, in what a recipe extends, or in a default of the package does not change in here as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bakeoff.recipe import Recipe

FOLDER = Path(__file__).parent


class Value(NamedTuple):
    """What a recipe should have at a key."""

    value: Any
    source: str


class Table(NamedTuple):
    """All files of the table."""

    entries: Mapping[str, Mapping[str, Any]]
    """By the name of the recipe; names that begin with a dot are parts of other entries."""
    common: Mapping[str, Value]
    """What holds for every recipe that has the key and whose entry does not name it."""
    free: Sequence[str]
    """Keys that define no system."""

    def expected(self, name: str) -> dict[str, Value]:
        """The values of one entry with all that it extends, later ones in place of earlier ones."""
        entry = dict(self.entries[name])
        extends, without = entry.pop("extends", []), entry.pop("without", [])
        entry.pop("replaces", None)  # of what others take over besides this entry
        values: dict[str, Value] = {}
        for base in [extends] if isinstance(extends, str) else extends:
            values = _without(values, self.entries[base].get("replaces", [])) | self.expected(base)
        values = _without(values, without)
        own = [(key, Value(value, source)) for source, tree in entry.items() for key, value in leaves(tree)]
        twice = {key for key, _ in own if [other for other, _ in own].count(key) > 1}
        assert not twice, f"{name}: {sorted(twice)} are given twice"
        return values | dict(own)

    def differences(self, name: str, found: Mapping[str, Any]) -> list[str]:
        """Where a recipe's keys and values are others than the table's, a line each."""
        expected, lines, named = self.expected(name), [], set[str]()
        for key, value in found.items():
            if key in self.free:
                continue
            ways = general(key)
            named |= expected.keys() & ways
            right = next((values[way] for values in (expected, self.common) for way in ways if way in values), None)
            if right is None:
                lines.append(f"{key}: {value!r} stands in no source's values")
            elif right.value != value or isinstance(right.value, bool) != isinstance(value, bool):
                lines.append(f"{key}: {value!r}, but {right.value!r} says {right.source}")
        missing = [key for key in expected if key not in named]
        return lines + [f"{key}: absent, but {expected[key].value!r} says {expected[key].source}" for key in missing]


def read_table() -> Table:
    """The table of all files.

    Raises:
        AssertionError: an entry is given twice.
    """
    common = yaml.safe_load((FOLDER / "common.yaml").read_text(encoding="utf-8"))
    entries: dict[str, Mapping[str, Any]] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.name != "common.yaml":
            new = yaml.safe_load(path.read_text(encoding="utf-8"))
            assert not new.keys() & entries.keys(), f"{path.name}: {new.keys() & entries.keys()} stand in two files"
            entries |= new
    values = {key: Value(value, source) for source, tree in common["common"].items() for key, value in leaves(tree)}
    return Table(entries, values, common["free"])


def recipe_leaves(recipe: Recipe) -> dict[str, Any]:
    """Every key of the complete recipe, defaults written out, with its value."""
    values = recipe.model_dump(mode="json")
    values["training"]["budget"] = recipe.training.budget.model_dump(exclude_none=True)
    return dict(leaves(values))


def leaves(tree: Mapping[str, Any], key: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys of a tree and their values; lists of numbers are values.

    Entries of a list of mappings are called by their kind in `objective`, and by their place elsewhere.
    """
    for name, node in tree.items():
        path = f"{key}.{name}" if key else name
        if isinstance(node, list) and node and isinstance(node[0], Mapping):
            node = {entry["kind"] if path == "objective" else place: entry for place, entry in enumerate(node)}
        if isinstance(node, Mapping) and node:
            yield from leaves(node, path)
        else:
            yield path, node


def general(key: str) -> list[str]:
    """The keys of the table that may speak of a recipe's key, the most special first."""
    parts = key.split(".")
    stack = ["stack" if place == 1 and part in ("encoder", "decoder") else part for place, part in enumerate(parts)]
    ways = [parts, stack]
    if parts[0] == "model" and len(parts) > 3 and parts[2] == "block" and parts[3].isdigit():
        ways += [[*way[:3], *way[4:]] for way in (parts, stack)]
    if parts[0] == "objective":
        ways.append(["objective", "any", *parts[2:]])
    return [".".join(way) for way in ways]


def _without(values: dict[str, Value], prefixes: Sequence[str]) -> dict[str, Value]:
    return {key: value for key, value in values.items() if not any(_within(key, prefix) for prefix in prefixes)}


def _within(key: str, prefix: str) -> bool:
    return key == prefix or key.startswith(f"{prefix}.")
