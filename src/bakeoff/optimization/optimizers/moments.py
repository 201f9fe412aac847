"""Adam's update with decoupled weight decay, its moments corrected for their beginning at zero or not."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor


class Moments(torch.optim.Optimizer):
    """x <- x - lr (m / (sqrt(v) + epsilon) + decay x), m and v the running means of gradients and their squares.

    With bias correction m / (1 - beta1^t) and v / (1 - beta2^t) stand for m and v in step t (Kingma and Ba 2015,
    algorithm 1). Without it the first steps are larger, up to 6.6 times at betas of 0.9 and 0.999; the code of BERT,
    ALBERT and XLNet has none.
    """

    TEMPORARIES: ClassVar[int] = 2
    """Numbers for each parameter that a step needs for a moment: the denominators and the updates."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float,
        betas: tuple[float, float],
        epsilon: float,
        *,
        bias_correction: bool,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": epsilon, "weight_decay": 0.0})
        self.bias_correction = bias_correction

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                updates = self._directions(group, parameters, [p.grad for p in parameters])
                self.scale(group, parameters, updates)
                torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def scale(self, group: dict[str, Any], parameters: list[Tensor], updates: list[Tensor]) -> None:
        """Change the updates of a group in place, before the learning rate."""

    def _directions(self, group: dict[str, Any], parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        beta1, beta2 = group["betas"]
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros(()),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        states = [self.state[p] for p in parameters]
        first, second = [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]
        for state in states:
            state["step"] += 1
        step = float(states[0]["step"])  # on the CPU: nothing waits for the device
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        seen = 1 - beta2**step if self.bias_correction else 1.0
        denominators = torch._foreach_div(second, seen)
        torch._foreach_sqrt_(denominators)
        torch._foreach_add_(denominators, group["eps"])
        updates = torch._foreach_div(first, denominators)
        if self.bias_correction:
            torch._foreach_div_(updates, 1 - beta1**step)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        return list(updates)
