"""Layers that read a learned mix of all outputs before them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class LayerWeighting(nn.Module):
    """x_i <- sum_j a_ij y_j over j = 0 ... i, with y_0 what comes into the stack and y_j what part j has given.

    Depth-weighted averages of Pagliardini et al. 2024 (arXiv:2402.02622), behind every part as in GPT-BERT (Charpentier
    and Samuel 2024, arXiv:2410.24159), where a part is a mixer or a feed-forward network with its residual connection.
    Part i + 1 reads x_i. The weights a_i begin as those of y_i alone, which mixes nothing. The stack owns the weights,
    so that layers which share all their parts (ALBERT) can still have different ones.

    Each a_i is a matrix of one row, which optimizers decay and adapt as they do others, like the published code.
    """

    def __init__(self, parts: int) -> None:
        """Make the weights of a stack that applies `parts` parts one after the other."""
        super().__init__()
        self.weights = nn.ParameterList(
            nn.Parameter(torch.cat([torch.zeros(1, count), torch.ones(1, 1)], dim=1)) for count in range(1, parts + 1)
        )

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        """(B, T, D) the mix of what came into the stack and what its first parts have given, each (B, T, D)."""
        first, *others = self.weights[len(outputs) - 2].to(outputs[0].dtype).unbind(-1)
        mixed: Tensor = outputs[0] * first
        for weight, output in zip(others, outputs[1:], strict=True):
            mixed = torch.addcmul(mixed, output, weight)
        return mixed
