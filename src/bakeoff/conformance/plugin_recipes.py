"""Recipes with the parts of plugins in place of their own, so that the tests of recipes test plugins."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from bakeoff.config import PartConfig
from bakeoff.errors import UserError
from bakeoff.formats.registry import FORMATS
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.blocks import BLOCKS
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.optimization.optimizers import OPTIMIZERS
from bakeoff.optimization.schedules import SCHEDULES
from bakeoff.plugins import Plugin, registry_of
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe

BASES = ("bert-tiny", "roberta-tiny", "gpt2-tiny", "xlnet-tiny", "t5-tiny", "transformer-translation-tiny")
"""Recipes of every kind of model and of rows; every part fits into one of them."""
MODELS = ("roberta-tiny", "gpt2-tiny")
"""Recipes for parts that are not bound to rows or objectives: a bidirectional model, and a causal one."""
VOCABULARY = 160


def plugin_recipes(plugins: list[Plugin]) -> dict[str, Recipe]:
    """Every recipe with an example of a plugin's part in a legal place, by a name that tells recipe and part.

    Raises:
        UserError: no recipe can have a part; the message has the first refusal.
    """
    found: dict[str, Recipe] = {}
    for config in (config for plugin in plugins for config in plugin.configs):
        if not issubclass(config, PartConfig):  # a kind of task, which stands in no recipe
            continue
        for number, example in enumerate(config.examples):
            refusals = []
            legal = 0
            for name, values in _placed(config, example):
                name = f"{name}, example {number + 1}" if len(config.examples) > 1 else name
                try:
                    recipe = Recipe.parse({**values, "name": name, "published": None}, name)
                    with torch.device("meta"):
                        PretrainingModel(recipe, VOCABULARY)
                except UserError as error:
                    refusals.append(str(error))
                    continue
                found[name] = recipe
                legal += 1
            if not legal:
                where = f"{config.__name__}: no recipe can have it"
                raise UserError(f"{where}; give settings in its `examples`, or mend it: {refusals[0]}")
    return found


def _placed(config: type[PartConfig], example: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and values of recipes with a part in place of another one, legal or not."""
    registry = registry_of(config)
    assert registry is not None
    kind = registry.names(config)[0]
    for base in BASES if registry in (OBJECTIVES, FORMATS) else MODELS:
        values = load_recipe(base).model_dump(mode="json")
        part = {registry.tag: kind, **example}
        name = f"{kind} in {base}"
        if registry is OBJECTIVES:
            yield name, {**values, "objective": [part]}
            yield f"{kind} beside others in {base}", {**values, "objective": [*values["objective"], part]}
        elif registry is FORMATS:
            yield name, {**values, "input": {"length": 32, **part}}
        elif registry in (OPTIMIZERS, SCHEDULES):
            yield name, {**values, "training": {**values["training"], registry.sort: part}}
        else:
            side = "encoder" if values["model"]["encoder"] else "decoder"
            if registry is BLOCKS:
                values["model"][side]["block"] = part
            else:
                values["model"][side]["block"]["mixer"] = part
            yield name, values
