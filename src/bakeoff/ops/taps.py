"""Which places the taps of a convolution take."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class Taps(NamedTuple):
    """The places of the input with so many zeros before and after it, `dilation` apart."""

    before: int
    after: int
    dilation: int

    def pad(self, x: Tensor) -> Tensor:
        """(B, N, D) to (B, P, D), P = before + N + after."""
        return F.pad(x, (0, 0, self.before, self.after))

    def halo(self, kernel: int) -> int:
        """Number of places that the padded input has more than the output."""
        return (kernel - 1) * self.dilation

    def reversed(self, kernel: int) -> "Taps":
        """The taps of the gradient, which lead from outputs back to inputs."""
        return Taps(self.halo(kernel) - self.before, self.halo(kernel) - self.after, self.dilation)
