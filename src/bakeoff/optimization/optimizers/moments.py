"""Adam's update with decoupled weight decay, its moments corrected for their beginning at zero or not."""

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from bakeoff.optimization.optimizers.fused import fused_adamw


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
                self.move(group, parameters)

    def move(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """One update of the parameters of a group that have a gradient."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        updates = self._directions(group, parameters, gradients)
        self.scale(group, parameters, updates)
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def scale(self, group: dict[str, Any], parameters: list[Tensor], updates: list[Tensor]) -> None:
        """Change the updates of a group in place, before the learning rate."""

    def _directions(self, group: dict[str, Any], parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        beta1, beta2 = group["betas"]
        states = self._next_states(parameters)
        first, second = [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]
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

    def _next_states(self, parameters: list[Tensor]) -> list[dict[str, Tensor]]:
        """The states of parameters, with one more step counted."""
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros(()),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        states = [self.state[parameter] for parameter in parameters]
        for state in states:
            state["step"] += 1
        return states


class UncorrectedAdamW(Moments):
    """`Moments` without bias correction, in one pass over the memory on a GPU; on a CPU bits stay as they were."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float], epsilon: float) -> None:
        super().__init__(groups, lr, betas, epsilon, bias_correction=False)

    @override
    def move(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        if parameters[0].device.type == "cpu":
            super().move(group, parameters)
        else:
            self.move_fused(group, parameters)

    def move_fused(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        """`move` by torch's kernel, which after infinitely many steps corrects nothing: 1 - beta^t is 1."""
        states = self._next_states(parameters)
        ends = torch.full((len(parameters),), math.inf, device=parameters[0].device).unbind()
        fused_adamw(parameters, states, ends, group, group["betas"], group["eps"])
