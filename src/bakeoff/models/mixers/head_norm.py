"""The norm of queries and keys."""

from torch import Tensor, nn

from bakeoff.ops.head_norm import head_norm


class HeadNorm(nn.RMSNorm):
    """g x / sqrt(mean_i x_i^2 + epsilon) over the channels of one head, with one gain a channel for all heads.

    As in Qwen3, it keeps the scores of attention from growing with the weights (Henry et al. 2020, arXiv:2010.04245;
    Dehghani et al. 2023, arXiv:2302.05442, where it is a layer norm).
    """

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__(width, eps=epsilon)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, T, d) to (B, H, T, d), in the gain's precision, whatever the precision of x."""
        return head_norm(x, self.weight, self.epsilon)
