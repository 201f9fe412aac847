"""torch's fused AdamW, one pass over weights, gradients and moments, for optimizers with states of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim.adamw import adamw


def fused_adamw(
    parameters: Sequence[Tensor],
    states: Sequence[Mapping[str, Tensor]],
    steps: Sequence[Tensor],
    group: Mapping[str, Any],
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step: x <- (1 - lr decay) x - lr m' / (sqrt(v') + epsilon).

    m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t), with m and v the running means of gradients and their squares.

    Args:
        parameters: those with a gradient, all on one device.
        states: for each parameter the moments `exp_avg` and `exp_avg_sq`, which are updated.
        steps: for each parameter t - 1, on the parameter's device; increased by 1. Infinity: nothing is corrected.
        group: the parameters' group, with `lr` and `weight_decay`.
        betas: decay rates of the moments.
        epsilon: added to the root of the second moment.
    """
    adamw(
        list(parameters),
        [parameter.grad for parameter in parameters if parameter.grad is not None],
        [state["exp_avg"] for state in states],
        [state["exp_avg_sq"] for state in states],
        [],
        list(steps),
        fused=True,
        amsgrad=False,
        beta1=betas[0],
        beta2=betas[1],
        lr=group["lr"],
        weight_decay=group["weight_decay"],
        eps=epsilon,
        maximize=False,
    )
