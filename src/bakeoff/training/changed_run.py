"""A finished run under a changed recipe whose weights still fit: a longer memory, other rows, another dropout."""

from collections.abc import Mapping, Sequence
from typing import Any

from bakeoff.errors import UserError
from bakeoff.overrides import parse_override
from bakeoff.recipe import Recipe, load_recipe
from bakeoff.training.pretraining_model import build_on_meta
from bakeoff.training.run import Run

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by dotted keys, or the command line's texts `input.length=64`."""


def parsed(overrides: Overrides) -> dict[str, Any]:
    """Values by dotted keys.

    Raises:
        UserError: a text is not KEY=VALUE.
    """
    return dict(overrides if isinstance(overrides, Mapping) else map(parse_override, overrides))


def changed_run(run: Run, overrides: Overrides) -> Run:
    """The run, its recipe changed; nothing of it on disk is.

    Raises:
        UserError: an unknown key or a wrong value, or one with which the model has other tensors than the run.
    """
    keys = parsed(overrides)
    if not keys:
        return run
    changed = Run(run.path)
    changed.recipe = load_recipe(run.path / "recipe.yaml", keys)
    if problem := _unlike(run, changed.recipe):
        raise UserError(f"{run.path}: --set {_guilty(run, keys)}: the run's weights do not fit: {problem}")
    return changed


def _unlike(run: Run, recipe: Recipe) -> str | None:
    """The first tensor that the model of a recipe has and a run has not, or the other way round; None where all fit."""
    size = run.tokenizer.size
    old, new = (build_on_meta(each, size).state_dict() for each in (run.recipe, recipe))
    for name in [*new, *(name for name in old if name not in new)]:
        there, here = (None if name not in each else tuple(each[name].shape) for each in (old, new))
        if there != here:
            return f"{name} is {there or 'absent'} there, and {here or 'absent'} with this"
    return None


def _guilty(run: Run, keys: Mapping[str, Any]) -> str:
    """The key that alone changes the tensors, or all of them where none does."""
    for key, value in keys.items():
        try:
            if _unlike(run, load_recipe(run.path / "recipe.yaml", {key: value})):
                return key
        except UserError:
            continue
    return ", ".join(keys)
