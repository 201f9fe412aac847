"""The choice of the family that can express a recipe, and its config.json."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bakeoff.config import differing
from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families import FAMILIES, Family, NotSaid, precedence
from bakeoff.interop.families.task_heads import HeadForm, TaskHead
from bakeoff.interop.links import Link
from bakeoff.models.model import ModelConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

OF_TRAINING = {"initial", "projection_initial", "scaled_residuals", "second_stream", "mixer_dropout"}
"""Keys of `model` that a family need not keep: they set first weights, or a dropout that a family may lack."""


class FamilyChoice(NamedTuple):
    """A family that can express a model, and how."""

    family: Family
    """The chosen family."""
    config: dict[str, Any]
    """The config.json, without the keys that come from the tokenizer."""
    links: list[Link]
    """The links of all tensors."""
    head: TaskHead | None = None
    """The class of transformers with the head of a fine-tuned run; None: a pre-trained run."""


def choose(
    recipe: Recipe, tokenizer: Tokenizer, preferred: str | None, task: HeadForm | None = None
) -> FamilyChoice | dict[str, str]:
    """The first family that can express a recipe's model and heads, or the reason against each family.

    Args:
        recipe: the run's.
        tokenizer: the run's.
        preferred: the `model_type` that the run was imported with, if any.
        task: the head of a fine-tuned run; None: the heads of the recipe's objectives.
    """
    kind = tokenizer.config.kind

    def rank(family: Family) -> tuple[bool, bool, int]:
        return preferred not in family.model_types, kind not in family.kinds, precedence(family)

    reasons = {}
    for family in sorted(FAMILIES, key=rank):
        try:
            if family.pad not in (None, tokenizer.pad):
                raise NotSaid(f"its padding token is {tokenizer.pad}, and that of this family {family.pad}")
            config = said(family, recipe)
            if task is None:
                return FamilyChoice(family, config, family.links(recipe))
            if task.transform != family.transforms:
                has, there = ("no map", "has one") if family.transforms else ("a map", "has none")
                raise NotSaid(f"its head has {has} with a norm before the last one (`transform`), and theirs {there}")
            head = family.task(task, recipe)
            config |= {**head.config, "architectures": [head.architecture]}
            return FamilyChoice(family, config, [*family.body(recipe), *head.links], head)
        except NotSaid as reason:
            reasons[family.model_types[0]] = str(reason)
    return reasons


def said(family: Family, recipe: Recipe) -> dict[str, Any]:
    """The family's config.json for a recipe, checked by reading the same model back from it."""
    config = family.config(recipe)
    names = {name for link in family.links(recipe) for name in link.theirs}
    try:
        values = family.recipe(ConfigReader(config, "config.json"), names)
        back = ModelConfig.parse(values["model"], "model")
    except UserError as error:
        raise NotSaid(str(error)) from None
    for key, here, there in differing(plain(recipe.model), plain(back)):
        raise NotSaid(f"model.{key} is {here!r:.50} here, and {there!r:.50} in that family")
    heads = {part["kind"]: part.get("activation", "gelu") for part in values["objective"]}
    for part in recipe.objective:
        here, there = part.head_activation, heads.get(part.kind)
        if here is not None and there is not None and here != there:
            raise NotSaid(f"{part.kind}'s head has the activation {here} here, and {there} in that family")
    return {"model_type": family.model_types[0], **config}


def plain(model: ModelConfig) -> Any:
    """The values that decide the model's outputs; no segments count as one segment of zeros."""
    values = model.model_dump(mode="json")
    values["embedding"]["segments"] = max(1, values["embedding"]["segments"])
    for side, stack in model.stacks().items():
        if stack.share == "none":
            values[side]["groups"] = 1
        if isinstance(stack.block, list):  # lists may assign the same blocks to layers in several ways
            blocks = [block.model_dump(mode="json") for block in stack.layer_blocks()]
            values[side]["block"] = [block | {"at": None, "repeat": None, "every": None} for block in blocks]
    return _decided(values, values["dropout"])


def _decided(node: Any, dropout: float) -> Any:
    """The tree without the keys of OF_TRAINING, and with the model's dropout where a dropout is left to it."""
    if isinstance(node, list):
        return [_decided(each, dropout) for each in node]
    if not isinstance(node, Mapping):
        return node
    decided = {name: _decided(value, dropout) for name, value in node.items() if name not in OF_TRAINING}
    if "dropout" in decided and decided["dropout"] is None:
        decided["dropout"] = dropout
    return decided
