"""Import of models that `bakeoff export --to hf` wrote with code of their own, because no family expresses them."""

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import torch
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.t5 import MARKS
from bakeoff.interop.families.task_heads import CHOICES, SEQUENCE, HeadForm, NotSaid, TaskHead
from bakeoff.interop.links import Link, same
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe import Recipe
from bakeoff.tasks.heads.transform import Transform, transform_of
from bakeoff.tasks.task_config import HeadClass

RECIPE, TRAINED_HEAD = "recipe", "trained_head"
"""Keys of config.json: the run's recipe, and the objective whose head is included (absent: no head is)."""
BODY, HEAD = "model.network.", "language."
"""Prefixes of the tensors that a run has under `model.` and `heads.NAME.`."""


class BakeoffFamily(Family):
    """Models with code of their own: config.json holds the recipe of the run; the file of code is not read.

    The family serves import alone: a run is exported with code of its own only if no family can express it.
    """

    model_types: ClassVar[tuple[str, ...]] = ("bakeoff",)

    @override
    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        recipe = Recipe.parse(_mapping(config, RECIPE), f"{config.where}: {RECIPE}")
        trained = config.values.get(TRAINED_HEAD)
        if trained is not None and trained not in [part.kind for part in recipe.objective]:
            raise UserError(f"{config.where}: {TRAINED_HEAD}: {trained!r:.50} is no objective of its recipe")
        # The included head is the first objective's, so that `heads` knows it from the recipe alone.
        objectives = sorted(recipe.objective, key=lambda part: part.kind != trained)
        parts = [part.model_dump(mode="json") for part in objectives]
        for part, values in zip(objectives, parts, strict=True):
            if part.extra_tokens:  # marks after the tokenizer's vocabulary, which are tokens of the exported tokenizer
                values["mark_names"] = MARKS
        return {**recipe.model_dump(mode="json"), "objective": parts}

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        raise NotSaid("it is what models are written as that no other family has")

    @override
    def body(self, recipe: Recipe) -> Iterator[Link]:
        yield from _body(_tensors(recipe))

    @override
    def heads(self, recipe: Recipe) -> Iterator[Link]:
        yield from _heads(recipe, _tensors(recipe))

    @override
    def links(self, recipe: Recipe) -> list[Link]:
        tensors = _tensors(recipe)
        return [*_body(tensors), *_heads(recipe, tensors)]

    @override
    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """The head of a fine-tuned run; its tensors keep their names."""
        names = ["output.weight", "output.bias"]
        if form.transform:
            with torch.device("meta"):
                transform = Transform(1, 1, transform_of(recipe))
            names += [f"transform.{name}" for name in transform.state_dict()]
        elif form.of_rows and form.pooling == "cls":
            names += ["pooler.weight", "pooler.bias"]
        if form.layers == "weighted":
            names += ["reading.weights", "reading.gamma"]
        return TaskHead(f"BakeoffFor{form.ending}", [same(name, name) for name in names])

    @override
    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        reader = ConfigReader(_mapping(config, "task_head"), f"{config.where}: task_head")
        pooling = reader.choice("pooling", {each: each for each in ("cls", "mean", "max", "last")}, "")
        layers = reader.values.get("layers", 1)
        layers = layers if layers == "weighted" else reader.whole("layers", 1)
        pooler = reader.choice("pooler", {each: each for each in ("tanh", "relu", "gelu")}, "tanh")
        return HeadForm(
            ending, ending in (SEQUENCE, CHOICES), pooling, layers, pooler, reader.values.get("transform") is not None
        )


def _mapping(config: ConfigReader, key: str) -> dict[str, Any]:
    """A JSON object in the config.

    Raises:
        UserError: the key is missing, or holds something else.
    """
    values = config.values.get(key)
    if not isinstance(values, dict):
        raise UserError(f"{config.where}: {key}: is missing; export the run again")
    return values


Tensors = list[tuple[str, bool]]
"""Names of a run's tensors, and whether each has a row for every token."""


def _tensors(recipe: Recipe) -> Tensors:
    fewer, more = (build_on_meta(recipe, size).state_dict() for size in (256, 257))
    return [(name, tensor.shape != more[name].shape) for name, tensor in fewer.items()]


def _body(tensors: Tensors) -> Iterator[Link]:
    for name, grows in tensors:
        if name.startswith("model."):
            yield same(name, BODY + name.removeprefix("model."), vocabulary=grows)


def _heads(recipe: Recipe, tensors: Tensors) -> Iterator[Link]:
    for part in recipe.objective:
        prefix = f"heads.{part.kind}."
        for name, grows in tensors:
            if name.startswith(prefix):
                there = HEAD + name.removeprefix(prefix) if part is recipe.objective[0] else f"{part.kind}: {name}"
                yield same(name, there, vocabulary=grows).may_miss(f"head of {part.kind}")
