"""Stochastic gradient descent: with momentum, and with Nesterov's."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn
from typing_extensions import override

from bakeoff.optimization.optimizers.base_config import DecayConfig, WeightDecay


class SgdConfig(DecayConfig):
    """x <- x - lr b, with b <- momentum b + g + decay x: the TCN's and Pham's, torch's own."""

    kind: Literal["sgd"] = "sgd"
    """The optimizer's name."""
    momentum: float = Field(default=0.0, ge=0, lt=1)
    """Share of the last step's direction that stays; 0 is plain gradient descent."""
    weight_decay: WeightDecay = Field(default=0.0)
    """L2 decay: added to the gradient, and so part of the momentum; norms and biases have none."""

    @property
    def moments(self) -> int:
        """One with momentum, the direction; zero without."""
        return 1 if self.momentum else 0

    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        """The optimizer of a module's parameters, fused into one pass."""
        return torch.optim.SGD(self.groups(module), lr=self.rate, momentum=self.momentum, fused=True)


class NagConfig(DecayConfig):
    """Nesterov's accelerated gradient as the gated convolutions use it (Sutskever et al. 2013; Dauphin et al. 2017)."""

    kind: Literal["nag"] = "nag"
    """The optimizer's name."""
    momentum: float = Field(default=0.99, gt=0, lt=1)
    """Share of the last step's direction that stays."""
    weight_decay: WeightDecay = Field(default=0.0)
    """Decoupled decay, x <- (1 - lr decay) x before the step; norms and biases have none."""

    @property
    def moments(self) -> int:
        """One: the direction of the momentum."""
        return 1

    @override
    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        groups = self.groups(module)
        for group in groups:
            group["decoupled_decay"] = group.pop("weight_decay")
        return NesterovMomentum(groups, self.rate, self.momentum)


class NesterovMomentum(torch.optim.SGD):
    """x <- (1 - lr decay) x - lr (g + momentum b), with b <- momentum b + g.

    b is free of the learning rate, so that a change of it acts on all of the next step. In the form of Sutskever et al.
    2013 (arXiv:1212.0901, section 2) with v = -lr b this is v <- momentum (lr / last lr) v - lr g and
    x <- x + momentum v - lr g; without the correction in brackets old gradients would keep their old rate.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, momentum: float) -> None:
        super().__init__(groups, lr=lr, momentum=momentum, nesterov=True, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            decayed = [p for p in group["params"] if p.grad is not None]
            if group["decoupled_decay"] and decayed:
                torch._foreach_mul_(decayed, 1 - group["lr"] * group["decoupled_decay"])
        super().step(closure)
