"""Layers replayed as CUDA graphs: one launch in place of a hundred, where launches take longer than the work.

A graph reads and writes at fixed addresses. What a replay gives, outputs, what the backward pass needs, gradients,
lasts until the next pass begins, which may write there. Torch's trees of graphs keep the addresses of weights, copy
other inputs to where a graph reads them, and set the seeds of dropout before each replay.
"""

import torch
from torch import nn


class ReplayedPasses:
    """The passes of a step through a module whose layers are replayed.

    Gradients of the first pass are where a graph has written them; those of a later pass would be added there, and be
    written over by it. Therefore they are copied before it begins, and added to the copies.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        self._copies: dict[int, torch.Tensor] = {}

    def begin(self) -> None:
        """Begin a pass, which may write over what the pass before has given."""
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is not None and parameter.grad is not self._copies.get(number):
                self._copies[number] = parameter.grad = parameter.grad.clone()
        torch.compiler.cudagraph_mark_step_begin()
