"""The positions that the taps of a convolution read."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class Taps(NamedTuple):
    """The positions of the taps, `dilation` apart in the input with `before` and `after` zeros around it."""

    before: int
    after: int
    dilation: int

    def pad(self, x: Tensor) -> Tensor:
        """(B, N, D) to (B, P, D), P = before + N + after."""
        return F.pad(x, (0, 0, self.before, self.after))

    def halo(self, kernel: int) -> int:
        """Number of positions by which the padded input exceeds the output."""
        return (kernel - 1) * self.dilation

    def reversed(self, kernel: int) -> "Taps":
        """The taps of the gradient, from outputs back to inputs."""
        return Taps(self.halo(kernel) - self.before, self.halo(kernel) - self.after, self.dilation)
