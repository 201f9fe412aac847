"""Adafactor: second moments of matrices from those of their rows and columns."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.optimization.optimizers.base_config import OptimizerBaseConfig


class AdafactorConfig(OptimizerBaseConfig):
    """Adafactor as T5 uses it (Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5).

    No first moment, no weight decay, and instead of the paper's relative step size min(0.01, 1 / sqrt(t)) the
    learning rate is `lr` times the schedule's factor. It is relative to the tensor: multiplied by its root mean square.
    """

    kind: Literal["adafactor"] = "adafactor"
    """The optimizer's name."""
    decay: float = Field(default=0.8, gt=0)
    """c in the second moments' decay rate 1 - t^-c at step t."""
    threshold: float = Field(default=1.0, gt=0)
    """Largest root mean square of a tensor's update before the learning rate."""
    epsilons: tuple[float, float] = (1e-30, 1e-3)
    """The number added to squared gradients, and the least size that a tensor is taken to have."""

    @property
    def moments(self) -> int:
        """Zero: of matrices only rows and columns have moments, and vectors are too few to count."""
        return 0

    @override
    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        return Adafactor(trained, self.rate, self.decay, self.threshold, self.epsilons)


class Adafactor(torch.optim.Optimizer):
    """x <- x - lr max(e2, rms(x)) U / max(1, rms(U) / threshold), with U = g / sqrt(V), tensor by tensor.

    V is a running mean of g^2 + e1 with decay 1 - t^-c; for matrices R C / mean(R), with the running means R of the
    rows and C of the columns. Tensors with more dimensions are factored over the two largest, as in T5's code.

    torch's own is another algorithm: it caps the learning rate at 1 / sqrt(t), and instead of adding e1 it holds V
    above e1^2, which stops tensors with small gradients, or divides zero by zero where e1 is the paper's.
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, decay: float, threshold: float, epsilons: tuple[float, float]
    ) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay, "threshold": threshold, "epsilons": epsilons})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(group, parameter, parameter.grad)

    def _update(self, group: dict[str, Any], parameter: Tensor, gradient: Tensor) -> None:
        state = self.state[parameter]
        least_square, least_size = group["epsilons"]
        squares = gradient.square().add_(least_square)
        if parameter.dim() >= 2:
            by_size = sorted(range(parameter.dim()), key=lambda axis: parameter.shape[axis])
            row, column = by_size[-2:]
            means = {"rows": squares.mean(column, keepdim=True), "columns": squares.mean(row, keepdim=True)}
        else:
            means = {"squares": squares}
        if not state:
            state["step"] = torch.zeros(())
            state |= {name: torch.zeros_like(mean) for name, mean in means.items()}
        state["step"] += 1
        weight = float(state["step"]) ** -group["decay"]  # the step is on the CPU: nothing waits for the device
        for name, mean in means.items():
            state[name].lerp_(mean, weight)
        if parameter.dim() >= 2:
            # Two roots, because the product of two second moments can be too small a number.
            rows = state["rows"] / state["rows"].mean(row, keepdim=True)
            update = gradient * rows.rsqrt_() * state["columns"].rsqrt()
        else:
            update = gradient * state["squares"].rsqrt()
        size = _root_mean_square(parameter).clamp_(min=least_size)
        update *= size / (_root_mean_square(update) / group["threshold"]).clamp_(min=1.0)
        parameter.add_(update, alpha=-group["lr"])


def _root_mean_square(x: Tensor) -> Tensor:
    """sqrt(mean(x^2)) as a scalar on the device."""
    return cast(Tensor, torch.linalg.vector_norm(x) / x.numel() ** 0.5)
