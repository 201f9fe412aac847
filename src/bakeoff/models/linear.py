"""The linear layer of mixers and feed-forward networks."""

from torch import Tensor, nn

from bakeoff.ops.linear import linear


class Linear(nn.Linear):
    """torch's linear layer, by `bakeoff.ops.linear`."""

    def forward(self, x: Tensor, beside: Tensor | None = None) -> Tensor:
        """(..., I) to (..., O), added to `beside` where there is such."""
        return linear(x, self.weight, self.bias, beside)
