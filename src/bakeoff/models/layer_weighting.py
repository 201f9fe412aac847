"""Layers that read a learned mix of all earlier outputs."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn


class LayerWeighting(nn.Module):
    """x_i <- sum_j a_ij y_j over j = 0 ... i, where y_0 is the stack's input and y_j the output of part j.

    Depth-weighted averages of Pagliardini et al. 2024 (arXiv:2402.02622), after every part as in GPT-BERT (Charpentier
    and Samuel 2024, arXiv:2410.24159), where a part is a mixer or a feed-forward network with its residual connection.
    Part i + 1 reads x_i. The weights a_i begin as 1 for y_i and 0 for the others, which mixes nothing. The stack owns
    the weights, so that layers which share all their parts (ALBERT) can still have different ones.

    Each a_i is a matrix of one row, which optimizers decay and adapt like other matrices, as in the published code.
    """

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, parts: int) -> None:
        """The weights of a stack that applies `parts` parts one after the other."""
        super().__init__()
        self.weights = nn.ParameterList(
            nn.Parameter(torch.cat([torch.zeros(1, count), torch.ones(1, 1)], dim=1)) for count in range(1, parts + 1)
        )

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        """(B, T, D) the mix of the stack's input and the outputs of its first parts, each (B, T, D)."""
        first, *others = self.weights[len(outputs) - 2].to(outputs[0].dtype).unbind(-1)
        mixed: Tensor = outputs[0] * first
        for weight, output in zip(others, outputs[1:], strict=True):
            mixed = torch.addcmul(mixed, output, weight)
        return mixed
