"""Hidden states of several layers as input of a head, or a learned weighting of all layers (ELMo)."""

from typing import Literal

import torch
from torch import Tensor, nn

from bakeoff.errors import UserError
from bakeoff.models.context import Context
from bakeoff.models.model import Model, ModelConfig
from bakeoff.models.stack import Stack
from bakeoff.row import Row


class LayerReading(nn.Module):
    """The states of a model's N last layers side by side, or gamma sum_l softmax(s)_l h_l over all L layers and h_0.

    h_0 is the input of the first layer; gamma and s are learned, from 1 and from zeros (Peters et al. 2018, equation
    1). Where a stack has a norm after its last layer, the states of each layer go through it, since states inside of a
    pre-norm stack grow from layer to layer.
    """

    def __init__(self, config: ModelConfig, layers: int | Literal["weighted"]) -> None:
        super().__init__()
        self.layers = layers
        require_readable(config, layers)
        depth = config.stack.layers
        self.weights = nn.Parameter(torch.zeros(depth + 1)) if layers == "weighted" else None
        self.gamma = nn.Parameter(torch.ones(())) if layers == "weighted" else None

    @property
    def widths(self) -> int:
        """The width of the output, as a multiple of the model's width."""
        return self.layers if isinstance(self.layers, int) else 1

    def forward(self, model: Model, row: Row[Tensor]) -> Tensor:
        """(B, T, N D) states side by side, or (B, T, D) weighted states."""
        states = layer_states(model, row)
        if self.weights is None or self.gamma is None:
            return torch.cat(states[-self.widths :], -1)
        shares = self.weights.softmax(0)
        total: Tensor = sum((share * state for share, state in zip(shares, states, strict=True)), torch.zeros(()))
        return self.gamma * total


def require_readable(config: ModelConfig, layers: int | Literal["weighted"]) -> None:
    """Refuse to read layers that a model does not have, or layers of different widths.

    Raises:
        UserError: the model has fewer layers, or its layers differ in width.
    """
    if layers == 1:
        return
    stack = config.stack
    if layers != "weighted" and layers > stack.layers:
        raise UserError(f"layers: the last {layers} are to be read, and the model has {stack.layers}")
    width = stack.width
    for layer, block in enumerate(stack.layer_blocks()):
        if (width := block.output_width(width, layer)) != stack.width:
            raise UserError("layers: this model's layers differ in width; leave the setting at 1, the last layer")


def layer_states(model: Model, row: Row[Tensor]) -> list[Tensor]:
    """L + 1 states (B, T, D): the input of the first layer of a model's last stack, and the output of each layer.

    A model with two directions has states (B, T, 2 D).
    """
    x, context = model.stack_inputs(row)
    states = _states(model.stack, x, context)
    if model.backward_decoder is None:
        return states
    backward = _states(model.backward_decoder, *model.reversed_inputs(x, row))
    return [torch.cat([one, other.flip(1)], dim=-1) for one, other in zip(states, backward, strict=True)]


def _states(stack: Stack, x: Tensor, context: Context) -> list[Tensor]:
    return [stack.output(states) for states in stack.outputs(x, context)]
