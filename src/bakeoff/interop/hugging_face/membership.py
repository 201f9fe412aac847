"""Whether transformers has a class for a recipe's model, said before it is trained."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from bakeoff.config import differing
from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import FAMILIES, Family, NotSaid, precedence
from bakeoff.interop.hugging_face.family_choice import plain, said
from bakeoff.models.model import ModelConfig
from bakeoff.recipe import Recipe

SHOWN = 8
"""The most keys that a remark names; a model that differs in more is another one."""


class Membership(NamedTuple):
    """The family of transformers that a recipe's model belongs to, or the nearest one."""

    family: str | None
    """The `model_type` of its family; None: there is none, and an export has a file of code of its own."""
    nearest: str | None = None
    """The family with the fewest other values, if one can be named."""
    changes: Mapping[str, Any] = MappingProxyType({})
    """The keys of the recipe that differ from it, with the family's values."""

    def told(self) -> str | None:
        """The sentence for people about an export that needs `trust_remote_code`; None: the recipe is in a family."""
        if self.family is not None:
            return None
        sentence = (
            "transformers has no class for this model: `export --to hf` writes its code beside the weights, to be "
            "loaded with trust_remote_code=True"
        )
        if self.nearest is None:
            return sentence
        keys = ", ".join(f"{key}={_short(value)}" for key, value in self.changes.items())
        return f"{sentence}. With {keys} (--set) it would be in the family {self.nearest}"


def membership(recipe: Recipe) -> Membership:
    """The family that the model of a recipe belongs to, whatever its tokenizer."""
    candidates: list[tuple[str, dict[str, Any]]] = []
    for family in sorted(FAMILIES, key=lambda each: (precedence(each), each.model_types[0])):
        try:
            said(family, recipe)
        except NotSaid:
            if changes := _changes(family, recipe):
                candidates.append((family.model_types[0], changes))
        else:
            return Membership(family.model_types[0])
    return Membership(None, *min(candidates, key=lambda each: len(each[1]))) if candidates else Membership(None)


def _changes(family: Family, recipe: Recipe) -> dict[str, Any]:
    """The keys with which a recipe would be in a family; empty where they are not a few single values."""
    try:
        config = family.config(recipe)
        names = {name for link in family.links(recipe) for name in link.theirs}
        theirs = ModelConfig.parse(family.recipe(ConfigReader(config, "config.json"), names)["model"], "model")
        changes = {f"model.{key}": there for key, _, there in differing(plain(recipe.model), plain(theirs))}
        if len(changes) > SHOWN or any(isinstance(value, list | dict) for value in changes.values()):
            return {}
        said(family, recipe.changed(changes))
    except (NotSaid, UserError, KeyError, AttributeError, TypeError):
        return {}
    return changes


def _short(value: Any) -> str:
    """A value as `--set` takes it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
