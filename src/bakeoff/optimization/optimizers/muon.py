"""Muon: momentum of matrices with its large singular values brought near 1, and AdamW for everything else."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.distributed.processes import ALONE
from bakeoff.distributed.shards import placed_like, whole_tensor
from bakeoff.models.matrices import matrices
from bakeoff.models.stack import Stack
from bakeoff.ops.cpu import muon as fused
from bakeoff.ops.cpu.compiled_kernels import IN_MEMORY, runs_kernels
from bakeoff.optimization.optimizers.base_config import DecayConfig, DecayRate, WeightDecay
from bakeoff.optimization.optimizers.fused import fused_adamw

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c of the published code."""


class MuonConfig(DecayConfig):
    """Muon for the weights of linear layers and convolutions (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

    Tables, vectors, kernels of a few taps and heads are trained by AdamW: each part of a layer declares which of its
    parameters are matrices (`bakeoff.models.matrices`). The defaults are those of the published code,
    whose learning rate of matrices is 0.02.
    """

    kind: Literal["muon"] = "muon"
    """The optimizer's name."""
    momentum: DecayRate = 0.95
    """Decay rate of the mean of the gradients, of which Nesterov's form goes through the iterations."""
    iterations: int = Field(default=5, gt=0, le=20)
    """Newton-Schulz iterations."""
    weight_decay: WeightDecay = Field(default=0.0)
    """Decoupled weight decay; norms and biases have none. Or one that follows the text: `{passes: 2}`; what `rest`
    trains remembers 1 / `rest` times as many passes."""
    rest: float = Field(default=0.015, gt=0)
    """Learning rate of all that AdamW trains, as a multiple of `lr`."""
    betas: tuple[DecayRate, DecayRate] = (0.9, 0.95)
    """Decay rates of AdamW's two moments."""
    epsilon: float = Field(default=1e-10, gt=0)
    """Added to the root of AdamW's second moment."""

    length_exponent: ClassVar[float | None] = 0.5
    decays_by_passes: ClassVar[bool] = True

    @property
    def moments(self) -> int:
        """AdamW's two moments; `kept` counts the single one of matrices."""
        return 2

    def kept(self, module: nn.Module) -> int:
        """One moment for each parameter of a matrix, and two for each one that AdamW trains."""
        return super().kept(module) - sum(matrix.numel() for matrix in _trained(module))

    def needed(self, module: nn.Module) -> int:
        """The directions of the matrices of one shape, and the intermediate results of their iterations."""
        counts = Counter((len(matrix), matrix.numel() // len(matrix)) for matrix in _trained(module))
        sizes = (count * (4 * math.prod(shape) + 2 * min(shape) ** 2) for shape, count in counts.items())
        return max(sizes, default=0)

    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        """The optimizer of a module's parameters; matrices are multiplied in the training's precision."""
        trained = list(_trained(module))
        chosen = {id(matrix) for matrix in trained}
        groups = [{"params": trained, "weight_decay": self.decay, "matrices": True}]
        for group in self.groups(module):
            others = [parameter for parameter in group["params"] if id(parameter) not in chosen]
            # torch puts the counts of steps of groups that are `fused` on the device when it loads a state.
            groups.append({**group, "params": others, "lr_multiple": self.rest, "fused": True})
        return Muon(groups, self, torch.bfloat16 if precision == "bfloat16" else torch.float32)


def _trained(module: nn.Module) -> Iterator[nn.Parameter]:
    """The matrices in the layers of the module's stacks that are trained."""
    stacks = nn.ModuleList(each for each in module.modules() if isinstance(each, Stack))
    return (matrix for matrix in matrices(stacks) if matrix.requires_grad)


class Muon(torch.optim.Optimizer):
    """x <- x - lr sqrt(max(1, rows / columns)) O(g + momentum (b - g)), with b <- momentum b + (1 - momentum) g.

    O(m) has the singular vectors of m, and its large singular values near 1, by Newton-Schulz iterations
    x <- a x + (b x x^T + c (x x^T)^2) x from m / |m|. With five of them every singular value of at least 0.0016 |m|
    ends between 0.68 and 1.21; a smaller one grows by no more than a^5 = 485, so that 0 stays 0 and a matrix of low
    rank stays far from an orthogonal one. Matrices of one shape go through the iterations together. All dimensions of a
    convolution's weight but the first count as one. Weight decay is decoupled. Groups that are not
    `matrices` are trained by torch's AdamW.

    torch's own Muon does the same for linear layers alone, one after the other and always in bfloat16, which takes
    longer for small matrices, and longer still where a machine has no products of that type.

    Args:
        groups: the matrices, in groups with `matrices`, and groups of other parameters.
        config: the settings.
        dtype: type of the numbers in the iterations.

    Attributes:
        processes: the processes that share the matrices of one shape, each with the same gradients.
    """

    processes = ALONE

    def __init__(self, groups: Iterable[dict[str, Any]], config: MuonConfig, dtype: torch.dtype) -> None:
        super().__init__(groups, {"lr": config.rate, "lr_multiple": 1.0, "matrices": False})
        self.config, self.dtype = config, dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                step = self._step_matrices if group["matrices"] else self._step_adamw
                step(group, parameters)

    def _step_matrices(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for parameter in parameters:
            alike[parameter.flatten(1).shape].append(parameter)
        for (rows, columns), together in alike.items():
            self._move(together, -group["lr"] * math.sqrt(max(1, rows / columns)))

    def _move(self, parameters: list[Tensor], factor: float) -> None:
        """Move parameters that are (R, C) matrices of one shape; temporary memory is freed at the end."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        means = [self.state[parameter]["momentum"] for parameter in parameters]
        if self._runs_kernels([*parameters, *means]):
            directions, lengths = fused.directions(gradients, means, self.config.momentum)
            fused.move(parameters, orthogonal(directions, self.config.iterations, lengths), factor)
            return
        torch._foreach_lerp_(means, gradients, 1 - self.config.momentum)
        whole = [whole_tensor(each).flatten(1) for each in torch._foreach_lerp(gradients, means, self.config.momentum)]
        orthogonalized = self._orthogonalized(whole).to(parameters[0].dtype)
        updates = [
            placed_like(update.view(parameter.shape), parameter)
            for update, parameter in zip(orthogonalized.unbind(), parameters, strict=True)
        ]
        torch._foreach_add_(parameters, updates, alpha=factor)

    def _runs_kernels(self, tensors: list[Tensor]) -> bool:
        """Whether kernels do what stands around iterations in bfloat16: for tensors of float32 and one process."""
        if not (self.processes.alone and all(type(each) in IN_MEMORY for each in tensors)):
            return False
        if not all(each.dtype == torch.float32 and each.is_contiguous() for each in tensors):
            return False
        return runs_kernels(torch.empty(0, dtype=self.dtype, device=tensors[0].device))

    def _orthogonalized(self, directions: list[Tensor]) -> Tensor:
        """(N, R, C) orthogonal matrices of N directions; each process makes its part of them, and gets the others."""
        part = self.processes.part(len(directions))
        own = directions[part.start : part.stop]
        # Tall matrices stay tall: products read a transposed matrix as fast as another, copies do not.
        together = torch.empty(len(own), *directions[0].shape, dtype=self.dtype, device=directions[0].device)
        if own:
            torch._foreach_copy_(list(together.unbind()), own)
            together = orthogonal(together, self.config.iterations)
        return self.processes.rows(together, len(directions))

    def _step_adamw(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros((), device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        fused_adamw(
            parameters,
            [self.state[parameter] for parameter in parameters],
            [self.state[parameter]["step"] for parameter in parameters],
            group,
            self.config.betas,
            self.config.epsilon,
        )


def orthogonal(matrices: Tensor, iterations: int, lengths: Tensor | None = None) -> Tensor:
    """(N, R, C) matrices with their large singular values brought near 1, see `Muon`; zeros stay zeros.

    Args:
        matrices: (N, R, C).
        iterations: the number of Newton-Schulz iterations.
        lengths: (N, 1, 1) the norms of the matrices, where they are known.
    """
    lengths = torch.linalg.matrix_norm(matrices, keepdim=True) if lengths is None else lengths.to(matrices.dtype)
    x: Tensor = matrices / lengths.clamp(min=1e-7)
    tall = x.shape[1] > x.shape[2]
    together = TOGETHER if _by_the_shorter_side(x) else 1
    for done in range(0, iterations, together):
        square = x.mT @ x if tall else x @ x.mT  # of the shorter side
        scale, factor = _factor(square, min(together, iterations - done))
        x = torch.baddbmm(x, x, factor, beta=scale) if tall else torch.baddbmm(x, factor, x, beta=scale)
    return x


TOGETHER = 3
"""Iterations that are taken together, before x x^T is computed anew. Each multiplies the rounding of x x^T, 0.004 in
bfloat16, by up to a^2 = 12 where x x^T is near 0, and by itself."""

LEAST_SHORTER = 256
"""Least length of the shorter side for which that is quicker."""


def _by_the_shorter_side(x: Tensor) -> bool:
    """Whether iterations are taken together: in bfloat16 on a CPU, of matrices twice as long as wide or more.

    In float32 the bits stay as they were.
    """
    shorter, longer = sorted(x.shape[1:])
    return x.device.type == "cpu" and x.dtype == torch.bfloat16 and shorter >= LEAST_SHORTER and longer >= 2 * shorter


def _factor(square: Tensor, iterations: int) -> tuple[float, Tensor]:
    """The factor (u I + F) by which some iterations multiply x, from x x^T alone: u, and the (N, S, S) F.

    An iteration is x <- (a I + P) x with P = b s + c s^2 of s = x x^T, which becomes (a I + P) s (a I + P): products of
    the shorter side. All of these commute. Multiples of x and s are not in the factors, where rounding them would mix
    large values into small ones.
    """
    a, b, c = COEFFICIENTS
    scale, factor = a, torch.baddbmm(square, square, square, beta=b, alpha=c)
    step = factor
    for _ in range(iterations - 1):
        half = torch.baddbmm(square, step, square, beta=a)
        square = torch.baddbmm(half, half, step, beta=a)
        step = torch.baddbmm(square, square, square, beta=b, alpha=c)
        factor = torch.baddbmm(torch.add(factor * a, step, alpha=scale), step, factor)
        scale *= a
    return scale, factor
