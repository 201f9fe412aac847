"""The root-mean-square norm of layers."""

from torch import Tensor, nn

from bakeoff.ops.head_norm import head_norm


class RMSNorm(nn.RMSNorm):
    """torch's norm g x / sqrt(mean_i x_i^2 + epsilon) (Zhang and Sennrich 2019, arXiv:1910.07467)."""

    eps: float

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) to (..., D) of x's type, computed in the gain's: torch has no norm of both, and warns."""
        if not self.elementwise_affine or self.weight.dtype == x.dtype:
            return super().forward(x)
        return head_norm(x, self.weight, self.eps).to(x.dtype)
