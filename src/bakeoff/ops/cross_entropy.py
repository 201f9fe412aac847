"""Cross-entropy over a large vocabulary."""

import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.cross_entropy import CrossEntropy


def cross_entropy(scores: Tensor, labels: Tensor, smoothing: float = 0.0, z_loss: float = 0.0) -> Tensor:
    """sum_n (Z_n + z Z_n^2 - (1 - e) s[n, y_n] - e mean_v s[n, v]) with Z_n = log sum_v exp s[n, v], in nats.

    On a CPU torch goes through log-softmax, which takes nearly twice as long as this and holds one more (N, V) tensor.
    Here the probabilities are computed once, and the gradient overwrites them, so that it can be taken only once.

    Args:
        scores: (N, V) unnormalised log-probabilities.
        labels: (N,) the columns of the true labels.
        smoothing: e, the share of the labels' probability that is spread evenly over all columns.
        z_loss: z, the weight of the squared normaliser; 0: there is none.
    """
    if scores.device.type != "cpu":
        plain = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
        return plain + z_loss * scores.logsumexp(-1).square().sum() if z_loss else plain
    loss: Tensor = CrossEntropy.apply(scores, labels, smoothing, z_loss)  # type: ignore[no-untyped-call]
    return loss
