"""Batch norm of windows, with statistics that leave out padding."""

import torch
from torch import Tensor, nn

EPSILON = 1e-3  # of Pham et al.'s code
MOMENTUM = 0.1


class BatchNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias (Ioffe and Szegedy 2015, arXiv:1502.03167).

    Mean and variance are those of the batch in training, and their moving averages otherwise. In training the rows of a
    batch therefore depend on each other, and a batch that is cut into micro-batches gives other gradients.

    Shapes: S slots of a window, N windows, D width.
    """

    mean: Tensor
    variance: Tensor
    kept: Tensor

    def __init__(self, slots: int, width: int) -> None:
        """Statistics for each channel of each slot; with `slots` = 1 for each channel, in all slots alike."""
        super().__init__()
        self.slots = slots
        # Vectors, whatever their meaning: the optimizer decays what has more dimensions.
        self.weight = nn.Parameter(torch.ones(slots * width))
        self.bias = nn.Parameter(torch.zeros(slots * width))
        self.register_buffer("mean", torch.zeros(slots * width))
        self.register_buffer("variance", torch.ones(slots * width))
        self.register_buffer("kept", torch.ones(()), persistent=False)  # of the averages, where processes share a batch

    def averages(self) -> list[Tensor]:
        """The moving averages, see `bakeoff.distributed.replicas.RunningStatistics`."""
        return [self.mean, self.variance]

    def forward(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Normalise (S, N, D); `padding_mask` is (N), 1 for windows that end at a token and 0 for those at padding."""
        mean, variance = (each.view(self.slots, 1, -1) for each in (self.mean, self.variance))
        if self.training:
            mean, variance, count = self._statistics(x.float() if x.dtype == torch.bfloat16 else x, padding_mask)
            with torch.no_grad():
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.kept.mul_(1 - MOMENTUM)
                self.mean.lerp_(mean.flatten().to(self.mean.dtype), MOMENTUM)
                self.variance.lerp_(unbiased.flatten().to(self.variance.dtype), MOMENTUM)
        scale = (variance + EPSILON).rsqrt() * self.weight.view(self.slots, 1, -1)
        shift = self.bias.view(self.slots, 1, -1) - mean * scale
        return torch.addcmul(shift.to(x.dtype), x, scale.to(x.dtype))

    def _statistics(self, x: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance, (S, 1, D) or (1, 1, D), and the number of values in each mean."""
        share = x.new_ones(x.shape[1]) if padding_mask is None else padding_mask.to(x.dtype)
        count = share.sum() * (1 if self.slots > 1 else x.shape[0])
        # A product with a vector reads x once and makes no copy of it, which a masked sum would.
        mean = self._over_slots(share @ x) / count.clamp(min=1)
        variance = self._over_slots(share @ (x - mean).square()) / count.clamp(min=1)
        return mean, variance, count

    def _over_slots(self, sums: Tensor) -> Tensor:
        """Sums over slots: (S, D) sums over the windows as (S, 1, D), or added up to (1, 1, D)."""
        return sums[:, None] if self.slots > 1 else sums.sum(0)[None, None]
