"""The dropout of the stages of a training, set in the module that is trained."""

from collections.abc import Sequence

from torch import nn

from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe import Recipe

Rates = dict[tuple[str, str], float]
"""The numbers of a module's parts, by the name of the part and that of its attribute."""


class Dropouts:
    """The rates of all dropouts in each stage.

    Args:
        recipes: the recipe of each stage, which differ in nothing else that parts of the model keep as a number.
        vocabulary: the number of tokens.
    """

    def __init__(self, recipes: Sequence[Recipe], vocabulary: int) -> None:
        self._rates = [_numbers(build_on_meta(each, vocabulary)) for each in recipes]
        self._now = -1

    def set(self, module: nn.Module, stage: int) -> None:
        """Give a module the rates of a stage."""
        if stage == self._now:
            return
        parts = dict(module.named_modules())
        for (name, attribute), rate in self._rates[stage].items():
            setattr(parts[name], attribute, rate)
        self._now = stage


def _numbers(module: nn.Module) -> Rates:
    return {
        (name, attribute): value
        for name, part in module.named_modules()
        for attribute, value in vars(part).items()
        if isinstance(value, float) and ("dropout" in attribute or "rate" in attribute)
    }
