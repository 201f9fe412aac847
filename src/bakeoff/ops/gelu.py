"""The Gaussian error linear unit, alone or with a gate."""

import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import runs_kernels
from bakeoff.ops.cpu.gelu import Gelu


def gelu(x: Tensor, by_tanh: bool = False, gate: Tensor | None = None) -> Tensor:
    """The unit x Phi(x), Phi the normal distribution (Hendrycks and Gimpel 2016, arXiv:1606.08415), times a gate.

    In bfloat16 on a CPU it is one pass of a kernel each way, whose Phi is a polynomial with an error of 1e-6.

    Args:
        x: any shape.
        by_tanh: BERT's approximation, Phi(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
        gate: a factor of x's shape; None: there is none.

    Returns:
        the shape of x.
    """
    if runs_kernels(x) and (gate is None or (runs_kernels(gate) and gate.shape == x.shape)):
        made: Tensor = Gelu.apply(x, gate, by_tanh)  # type: ignore[no-untyped-call]
        return made
    y = F.gelu(x, approximate="tanh" if by_tanh else "none")
    return y if gate is None else y * gate
