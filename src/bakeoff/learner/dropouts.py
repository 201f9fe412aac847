"""The dropout of the stages of a training, set in the module that is trained."""

from collections.abc import Sequence

from torch import nn

Rates = dict[tuple[str, str], float]
"""The numbers of a module's parts, by the name of the part and that of its attribute."""


class Dropouts:
    """The rates of all dropouts in each stage.

    Args:
        modules: the module of each stage as its recipe says, on any device; they differ in nothing else that parts of
            the model keep as a number.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._rates = [_numbers(each) for each in modules]
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
