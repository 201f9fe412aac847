"""Initial weights."""

import math
from collections.abc import Iterable
from typing import Annotated, Literal, Protocol, cast, runtime_checkable

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.part import Wrapper
from bakeoff.models.stack import Stack

INITIAL_STANDARD_DEVIATION = 0.02
"""Standard deviation of all linear layers and tables, as in GPT and BERT; larger tables make slow starts."""


class InitialConfig(Config):
    """A distribution around zero."""

    kind: Literal["normal", "truncated", "uniform"]
    """Form of the distribution; truncated is normal, cut at two deviations."""
    scale: float = Field(gt=0)
    """Standard deviation of the normal distribution, before it is cut, or bound of the uniform one."""

    def fill(self, weight: Tensor) -> None:
        """Fill a weight with draws from the distribution, by torch's global generator."""
        if self.kind == "normal":
            nn.init.normal_(weight, std=self.scale)
        elif self.kind == "truncated":
            nn.init.trunc_normal_(weight, std=self.scale, a=-2 * self.scale, b=2 * self.scale)
        else:
            nn.init.uniform_(weight, -self.scale, self.scale)


class InitialWeightsConfig(Config):
    """The initial weights of a model's linear layers, but not of tables or modules that draw their own."""

    linear: Literal["fan_in"] | Annotated[float, Field(gt=0)] = INITIAL_STANDARD_DEVIATION
    """Standard deviation of the truncated normal distribution; fan_in: 1 / sqrt(number of inputs), with which a linear
    layer keeps the size of normed states at any width (LeCun et al. 1998, Efficient BackProp, section 4.6).
    """
    zero_branches: bool = False
    """The last linear layer of every residual branch begins at zero, so that each layer at first passes on its input
    (Bachlechner et al. 2020, arXiv:2003.04887, discuss it; modded-nanogpt).
    """

    scaled_ffn: bool = False
    """The linear layers in the feed-forward network of layer l, counted from 0, begin smaller by sqrt(2 (1 + l))
    (LTG-BERT).
    """

    def deviation(self, linear: nn.Linear) -> float:
        """The standard deviation of a linear layer's initial weight."""
        return linear.in_features**-0.5 if self.linear == "fan_in" else self.linear


@runtime_checkable
class DrawsItself(Protocol):
    """A module, possibly of a plugin, that draws its own initial weights and those of its submodules."""

    def initialise(self) -> None:
        """Draw the initial weights, by torch's global generator."""


def initialise(module: nn.Module, config: InitialWeightsConfig | None = None) -> None:
    """Draw linear layers and tables from a truncated normal distribution; biases are zero (Devlin et al. 2019).

    A module that is `DrawsItself` draws its own weights and those of its submodules.
    """
    config = config or InitialWeightsConfig()
    if isinstance(module, DrawsItself):
        module.initialise()
        return
    if isinstance(module, nn.Linear | nn.Embedding):
        deviation = config.deviation(module) if isinstance(module, nn.Linear) else INITIAL_STANDARD_DEVIATION
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    for child in module.children():
        initialise(child, config)


@torch.no_grad()
def adapt_to_depth(stacks: Iterable[Stack], config: InitialWeightsConfig, scaled_residuals: bool) -> None:
    """Make the weights of residual branches smaller in deep stacks, or zero, as far as a model's settings ask for it.

    Args:
        stacks: the model's stacks, whose weights are drawn.
        config: the settings of initial weights.
        scaled_residuals: last linear layers are divided by the root of the number of residual branches.

    Raises:
        UserError: a recurrent mixer, whose output is its states, has no last linear layer.
    """
    for stack in stacks:
        if scaled_residuals:
            _scale_residuals(stack)
        if config.scaled_ffn:
            _scale_feed_forward(stack)
        if config.zero_branches:
            _zero_branches(stack)


def _scale_residuals(stack: Stack) -> None:
    """Divide last linear layers by the root of the number of residual branches (Radford et al. 2019, section 2.3)."""
    branches = sum(len(layer) for layer in stack.layers)
    for weight in _last_maps(stack):
        weight /= math.sqrt(branches)


def _scale_feed_forward(stack: Stack) -> None:
    """Divide feed-forward weights of layer l = 0, 1, ... by sqrt(2 (1 + l)), those of a shared network once.

    Source: Samuel et al. 2023 (arXiv:2303.09859) and its code, which follow Bajaj et al. 2022 (arXiv:2204.06644).
    """
    first = {dict(applied)["ffn"]: layer for layer, applied in reversed(list(enumerate(stack.index_map)))}
    for index, part in enumerate(stack.parts_named("ffn")):
        for module in part.modules():
            if isinstance(module, nn.Linear):
                module.weight /= math.sqrt(2 * (1 + first[index]))


def _zero_branches(stack: Stack) -> None:
    """Set the last linear layer of every residual branch to zero."""
    for weight in _last_maps(stack):
        weight.zero_()


def _last_maps(stack: Stack) -> list[Tensor]:
    """The weights of the last linear layers of the branches of transformer blocks, each shared one once.

    Raises:
        UserError: a recurrent mixer, whose output is its states, has no last linear layer.
    """
    maps = [cast(Wrapper, part).function.last_map for part in {part: None for layer in stack.layers for part in layer}]
    if None in maps:
        raise UserError("initial.zero_branches and scaled_residuals: a recurrent mixer has no last map; leave them out")
    return [last.weight for last in maps if last is not None]
