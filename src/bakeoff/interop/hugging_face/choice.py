"""Which family can say a recipe, and with which config.json."""

from collections.abc import Mapping
from typing import Any

from bakeoff.config import differing
from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import FAMILIES, Family, NotSaid
from bakeoff.models.model import ModelConfig
from bakeoff.recipe import Recipe

OF_TRAINING = {"initial", "projection_initial", "scaled_residuals", "second_stream"}
"""Keys of a model that matter only before its first step."""


def choose(recipe: Recipe, kind: str, preferred: str | None) -> tuple[Family, dict[str, Any]] | dict[str, str]:
    """The family that has a recipe's model, with its config.json; or for each family the reason why it has not.

    Args:
        recipe: the run's.
        kind: of its tokenizer.
        preferred: the model_type that the run was imported from, if any.
    """

    def rank(family: Family) -> tuple[bool, bool]:
        return preferred not in family.model_types, kind not in family.kinds

    reasons = {}
    for family in sorted(FAMILIES, key=rank):
        try:
            return family, _said(family, recipe)
        except NotSaid as reason:
            reasons[family.model_types[0]] = str(reason)
    return reasons


def _said(family: Family, recipe: Recipe) -> dict[str, Any]:
    """The config, from which the same model comes back."""
    config = family.config(recipe)
    names = {name for link in family.links(recipe) for name in link.theirs}
    try:
        back = ModelConfig.parse(family.recipe(ConfigReader(config, "config.json"), names)["model"], "model")
    except UserError as error:
        raise NotSaid(str(error)) from None
    for key, here, there in differing(_plain(recipe.model), _plain(back)):
        raise NotSaid(f"model.{key} is {here!r:.50} here, and {there!r:.50} in that family")
    return {"model_type": family.model_types[0], **config}


def _plain(model: ModelConfig) -> Any:
    """What decides the model's numbers in use; no segments are one segment of zeros."""
    values = model.model_dump(mode="json")
    values["embedding"]["segments"] = max(1, values["embedding"]["segments"])
    for stack in ("encoder", "decoder"):
        if values[stack] is not None and values[stack]["share"] == "none":
            values[stack]["groups"] = 1
    return _decided(values, values["dropout"], values.get("norm_epsilon"))


def _decided(node: Any, dropout: float, epsilon: Any, key: str = "") -> Any:
    """The tree without what only training's start reads, and with dropouts where they are the model's by default."""
    if isinstance(node, list):
        return [_decided(each, dropout, epsilon) for each in node]
    if not isinstance(node, Mapping):
        return node
    found = {name: _decided(value, dropout, epsilon, name) for name, value in node.items() if name not in OF_TRAINING}
    if "dropout" in found and found["dropout"] is None:
        found["dropout"] = dropout
    return found
