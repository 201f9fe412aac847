"""A finished run with a changed recipe that its weights still fit, such as a longer memory or another dropout."""

from collections.abc import Mapping
from typing import Any

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.unread_keys import Overrides, parsed


def changed_run(run: Run, overrides: Overrides) -> Run:
    """The run with a changed recipe in memory; its files stay as they are.

    Raises:
        UserError: a key is unknown, a value is invalid, or the changed model has other tensors than the run.
    """
    keys = parsed(overrides)
    if not keys:
        return run
    changed = Run(run.path)
    changed.recipe = load_recipe(run.home / "recipe.yaml", keys)
    if problem := unlike(run.recipe, changed.recipe, run.tokenizer.size):
        raise UserError(f"{run.path}: --set {_guilty(run, keys)}: the run's weights do not fit: {problem}")
    return changed


def unlike(old_recipe: Recipe, new_recipe: Recipe, vocabulary: int) -> str | None:
    """The first difference between the tensors of two recipes' models, for the user; None: there is none."""
    old, new = (build_on_meta(each, vocabulary).state_dict() for each in (old_recipe, new_recipe))
    for name in [*new, *(name for name in old if name not in new)]:
        there, here = (None if name not in each else tuple(each[name].shape) for each in (old, new))
        if there != here:
            return f"{name} is {there or 'absent'} there, and {here or 'absent'} with this"
    return None


def _guilty(run: Run, keys: Mapping[str, Any]) -> str:
    """The first key that changes the tensors alone, or all keys if none does."""
    for key, value in keys.items():
        try:
            if unlike(run.recipe, load_recipe(run.home / "recipe.yaml", {key: value}), run.tokenizer.size):
                return key
        except UserError:
            continue
    return ", ".join(keys)
