"""LAMB: layer-wise adaptive moments."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bakeoff.optimization.optimizers.base_config import MomentsConfig


class LambConfig(MomentsConfig):
    """Layer-wise adaptive moments for large batches (You et al. 2020, arXiv:1904.00962, algorithm 2)."""

    kind: Literal["lamb"] = "lamb"
    """The optimizer's name."""

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of a module's parameters."""
        return Lamb(self.groups(module), self.lr, self.betas, self.epsilon)


class Lamb(torch.optim.Optimizer):
    """x <- x - lr * |x| / |r + decay x| * (r + decay x), with r = m / (sqrt(v) + epsilon), moments bias-corrected.

    Norms are taken tensor by tensor; the ratio is 1 where either norm is 0.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float], epsilon: float) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": epsilon, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                self._update(group, parameters, [p.grad for p in parameters])

    def _update(self, group: dict[str, Any], parameters: list[Tensor], gradients: list[Tensor]) -> None:
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
        step = float(states[0]["step"])
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        denominators = torch._foreach_div(second, 1 - beta2**step)
        torch._foreach_sqrt_(denominators)
        torch._foreach_add_(denominators, group["eps"])
        updates = torch._foreach_div(first, denominators)
        torch._foreach_div_(updates, 1 - beta1**step)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        weights, lengths = torch._foreach_norm(parameters), torch._foreach_norm(updates)
        ratios = [
            torch.where((weight > 0) & (length > 0), weight / length, 1.0)
            for weight, length in zip(weights, lengths, strict=True)
        ]
        torch._foreach_mul_(updates, ratios)
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])
