"""The tested recipes, narrow but with all their kinds of layers; narrow recipes that are equal are tested once.

These are the recipes that come with Bakeoff, or, for plugins, recipes with a part of the plugin.

Differences between layers stay: block, mixer, kernel size, dilation, window, norm, and which widths differ. Two of all
equal layers are left, since a third does what the second does.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from bakeoff.conformance.plugin_recipes import plugin_recipes
from bakeoff.models.dropouts import with_dropout
from bakeoff.models.stack import StackConfig
from bakeoff.plugins import loaded_plugins
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names

SMALL: dict[str, Any] = {
    "input.length": 32,
    "training.batch": 8,
    "training.micro_batch": None,
    "training.first_batch": 1.0,
    "training.curriculum": [],
    "training.budget": {"steps": 12},
    "training.schedule": {"kind": "linear", "warmup": 0.2},
    "training.optimizer.lr": 1e-3,
    "training.validation_examples": 16,
    "training.compile": False,
}
"""Settings for short rows and a quick training."""

EQUAL_LAYERS, RATE = 2, 0.25
MOST = {"heads": 2, "units": 200, "memory": 96, "context": 8, "reuse": 12}
"""Upper bounds of these settings in any part of a recipe; a memory stays longer than the tests' rows."""


PLUGINS = loaded_plugins()
REGISTRY = plugin_recipes(PLUGINS) if PLUGINS else {name: load_recipe(name) for name in recipe_names()}
"""Every recipe, unchanged, by name."""

OPTIONS = {
    "ffn.convolution": 3,
    "mixer.query_key_norm": True,
    "mixer.convolution": 4,
    "mixer.gate": "gelu",
    "mixer.value_residual": True,
}
"""Settings of a block that no registered recipe has, by their keys within it."""
WINDOW = {"mixer.window": 5, "mixer.positions": "rotary", "mixer.rotary_base": 500.0, "mixer.value_residual": True}
"""Settings of a decoder's block that no registered recipe has: attention within a window, of values mixed
with the first layer's."""
WITHOUT_RESIDUAL = ("bert-base", "t5-base", "bart-tiny", "tcn-tiny", "conv-light-encoder-tiny")
"""Recipes that are tested without residual connections, too: with each position of the norm, a source, convolutions."""
NORMALISERS = {"conv-dynamic-encoder-tiny": "none", "conv-dynamic-lm-tiny": "l2", "conv-light-lm-tiny": "sigmoid"}
"""Recipes that are tested with another normaliser of kernels, too."""
VARIANTS = {f"{name} with options": OPTIONS for name in ("bert-base", "gpt2-base", "t5-base") if name in REGISTRY}
VARIANTS |= {f"{name} with a window": WINDOW for name in ("gpt2-base",) if name in REGISTRY}
VARIANTS |= {f"{name} with values": {"mixer.value_residual": True} for name in ("albert-base",) if name in REGISTRY}
VARIANTS |= {f"{name} with no residual": {"residual": False} for name in WITHOUT_RESIDUAL if name in REGISTRY}
VARIANTS |= {
    f"{name} with a normaliser": {"mixer.normaliser": each} for name, each in NORMALISERS.items() if name in REGISTRY
}
"""Further recipes to test, with settings that no registered recipe has. The key is a registered recipe's name, ` with`
and a word; the value is set in every block of the recipe."""


@cache
def narrow(name: str, least: int = 32) -> Recipe:
    """A registered recipe or a variant with all kernels and dilations, narrow widths and one dropout rate.

    The smallest width becomes `least`; different widths stay different.
    """
    if name in VARIANTS:
        recipe = narrow(name.partition(" with ")[0], least)
        sides = recipe.model.stacks()
        return recipe.changed(
            {f"model.{side}.block.{key}": VARIANTS[name][key] for side in sides for key in VARIANTS[name]}
        )
    recipe = REGISTRY[name]
    values = recipe.model_dump(mode="json")
    model = values["model"]
    for side, stack in recipe.model.stacks().items():
        model[side] |= few_equal_layers(stack)
    widths = sorted(set(_widths(model)))
    model["initial"]["zero_branches"] = False  # with branches of zero a layer would have no visible effect
    values["model"] = _narrowed(model, {width: least + 8 * rank for rank, width in enumerate(widths)})
    for objective in values["objective"]:
        if objective.get("cutoffs"):
            objective["cutoffs"] = [40, 100]
    values["input"] = _narrowed(values["input"], {})
    return Recipe.parse({**values, "name": name}, name).changed(SMALL).changed(_tested_training(recipe))


def _tested_training(recipe: Recipe) -> dict[str, Any]:
    """The changes that give a narrow recipe the optimizer and the schedule of a plugin as they were."""
    parts = {"optimizer": recipe.training.optimizer, "schedule": recipe.training.schedule}
    ours = {config for plugin in PLUGINS for config in plugin.configs}
    return {f"training.{key}": part.model_dump(mode="json") for key, part in parts.items() if type(part) in ours}


def without_dropout(recipe: Recipe) -> Recipe:
    """The recipe with every dropout of its model at zero, including dropout of weights."""
    return recipe.changed({"model": with_dropout(recipe.model, 0.0).model_dump(mode="json")})


def few_equal_layers(stack: StackConfig) -> dict[str, Any]:
    """The changes of a stack's values that leave two layers of each kind, in their order; empty: none is needed."""
    blocks = stack.layer_blocks()
    kinds = [json.dumps(of_layer(block.model_dump(mode="json"), layer)) for layer, block in enumerate(blocks)]
    kept = [layer for layer, kind in enumerate(kinds) if kinds[:layer].count(kind) < EQUAL_LAYERS]
    if len(kept) == len(blocks):
        return {}
    made = []
    for block in stack.distinct():
        own = _listed(block.model_dump(mode="json"), kept)
        layers = [layer for layer in kept if blocks[layer] is block]
        if isinstance(own["at"], int):
            own["at"] = kept.index(layers[0]) + 1
        if own["repeat"] is not None:
            own["repeat"] = len(layers)
        if layers:
            made.append(own)
    own_blocks = made if isinstance(stack.block, list) else made[0]
    return {"layers": len(kept), "groups": min(stack.groups, len(kept)), "block": own_blocks}


def of_layer(block: dict[str, Any], layer: int) -> dict[str, Any]:
    """A block's values for one layer, with that layer's kernel size and dilation in place of lists."""
    own = _listed({**block, "repeat": None, "at": None, "every": None}, [layer])
    if own["kind"] == "tcn" and own["dilation"] is None:
        own["dilation"] = 2**layer
    return own


def _listed(block: dict[str, Any], layers: list[int]) -> dict[str, Any]:
    """The block with its lists of a value for each layer cut down to these layers."""
    cut: dict[str, Any] = {
        key: [value[layer] for layer in layers]
        for key, value in block.items()
        if key in ("kernel", "dilation") and isinstance(value, list)
    }
    if isinstance(block.get("mixer"), dict):
        cut["mixer"] = _listed(block["mixer"], layers)
    return block | cut


def _widths(node: Any) -> Iterator[int]:
    """All widths in a tree of values."""
    if isinstance(node, dict):
        if isinstance(node.get("width"), int):
            yield node["width"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _widths(each)


def _narrowed(node: Any, widths: dict[int, int]) -> Any:
    if isinstance(node, list):
        return [_narrowed(each, widths) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _narrowed(value, widths) for key, value in node.items()}
    for key, value in made.items():
        if (key == "width" and value is not None) or (key == "heads" and value in widths):  # a head for each channel
            made[key] = widths[value]
        elif key in MOST and value is not None:
            made[key] = min(value, MOST[key])
        elif key.endswith("dropout") and value is not None:
            made[key] = RATE
        elif key in ("time_flow", "time_arrow"):
            made[key] = [6 + layer for layer in range(len(value))]
    return made


def _what_is_tested(name: str) -> str:
    """The parts of a recipe that the contracts test, as JSON: model, input and objective."""
    values = narrow(name).model_dump(mode="json")
    return json.dumps([values["model"], values["input"], values["objective"]], sort_keys=True)


ALIKE: dict[str, list[str]] = {}
"""Names of recipes that are equal when they are narrow, by the first of these names."""
_first: dict[str, str] = {}
for _name in [*REGISTRY, *VARIANTS]:
    ALIKE.setdefault(_first.setdefault(_what_is_tested(_name), _name), []).append(_name)


def _choices(node: Any, key: str = "") -> Iterator[tuple[str, str | bool | None]]:
    """Every setting in a tree of values that is chosen and not counted: kinds, names, what is on or off."""
    if isinstance(node, dict):
        for each, value in node.items():
            yield from _choices(value, f"{node.get('kind', '')}.{each}")
    elif isinstance(node, list):
        for each in node:
            yield from _choices(each, key)
    elif node is None or isinstance(node, str | bool):
        yield key, node


def _of_every_choice() -> set[str]:
    """Few names of `ALIKE` whose recipes together have every kind and every choice that any of them has."""
    values = {name: narrow(name).model_dump(mode="json") for name in ALIKE}
    parts = ("model", "input", "objective")
    chosen = {name: {each for part in parts for each in _choices(value[part], part)} for name, value in values.items()}
    left, few = set[tuple[str, str | bool | None]]().union(*chosen.values()), set[str]()
    while left:
        best = max(chosen, key=lambda name: len(chosen[name] & left))
        few.add(best)
        left -= chosen[best]
    return few


EVERY_CHOICE = set(ALIKE) if PLUGINS else _of_every_choice()
"""Names that long contracts are tested with in every run: the others have the same kinds in other combinations."""
