"""The linear layer of mixers and feed-forward networks."""

from torch import Tensor, nn

from bakeoff.ops.linear import linear


class Linear(nn.Linear):
    """torch's linear layer, by `bakeoff.ops.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        return linear(x, self.weight, self.bias)
