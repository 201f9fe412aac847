"""How weights begin."""

import math
from typing import Any, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.stack import Stack

INITIAL_STANDARD_DEVIATION = 0.02
"""Of all linear maps and tables, as in GPT and BERT; larger tables make denormals and slow starts."""


class InitialConfig(Config):
    """A distribution around zero."""

    kind: Literal["normal", "uniform"]
    """Its form."""
    scale: float = Field(gt=0)
    """Standard deviation of the normal distribution, or bound of the uniform one."""

    def fill(self, weight: Tensor) -> None:
        """Draw a weight from it, from torch's global generator."""
        if self.kind == "normal":
            nn.init.normal_(weight, std=self.scale)
        else:
            nn.init.uniform_(weight, -self.scale, self.scale)


def initialise(module: nn.Module) -> None:
    """Linear maps and tables from a truncated normal distribution, biases zero (Devlin et al. 2019).

    A part that has a method of this name takes care of itself and of what is in it.
    """
    own = getattr(module, "initialise", None)
    if own is not None:
        own()
        return
    if isinstance(module, nn.Linear | nn.Embedding):
        deviation = INITIAL_STANDARD_DEVIATION
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    for child in module.children():
        initialise(child)


@torch.no_grad()
def scale_residuals(stack: Stack) -> None:
    """Divide by the root of N, the number of residual branches (Radford et al. 2019, section 2.3)."""
    branches = sum(len(layer) for layer in stack.layers)
    for part in {part for layer in stack.layers for part in layer}:
        cast(Any, part).function.output.weight /= math.sqrt(branches)
