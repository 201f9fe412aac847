"""The highway layer, which passes on its input unless it learns to transform it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import dropout

CARRY_BIAS = -2.0
"""Bias added to the scores of a highway's gate, so that it passes on its input at first."""


class Highway(Part):
    """g relu(W x + b) + (1 - g) x with g = sigmoid(W_g x + b_g - 2) (Srivastava et al. 2015, arXiv:1505.00387).

    Dropout stands before and after the layer.
    """

    skips_padding = True

    def __init__(self, width: int, context: BuildContext) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.dropout = context.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D)."""
        x = dropout(x, self.dropout, self.training)
        gate = torch.sigmoid(self.gate(x) + CARRY_BIAS)
        y = gate * F.relu(self.transform(x)) + (1 - gate) * x
        return dropout(y, self.dropout, self.training), None

    @property
    @override
    def reads_packed(self) -> bool:
        return True

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        return 4 * self.gate.in_features**2
