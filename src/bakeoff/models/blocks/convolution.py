"""The dense convolution of gated and temporal convolutional networks."""

from collections.abc import Callable
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from bakeoff.models.context import Context
from bakeoff.models.part import Part, State, last_inputs
from bakeoff.ops.convolution import convolution
from bakeoff.ops.short_convolution import tap_offsets


class Convolution(Part):
    """b + sum_j W_j x[t + offset_j], with padding set to zero before it; D width, O output width, K kernel size.

    With weight normalisation W = g v / |v| for each output (Salimans and Kingma 2016, arXiv:1602.07868, equation 2).
    torch's parametrization is not used, because it gives each module a class of its own, so that the compiler would
    compile equal layers one by one.
    """

    skips_padding = True
    matrices: ClassVar[tuple[str, ...]] = ("direction",)

    def __init__(
        self,
        width: int,
        output_width: int,
        kernel: int,
        *,
        causal: bool,
        initial: Callable[[Tensor], Tensor],
        dilation: int = 1,
        weight_norm: bool = True,
    ) -> None:
        """The convolution; `initial` fills a weight of (O, K, D) with its first values."""
        super().__init__()
        self.kernel, self.dilation, self.causal = kernel, dilation, causal
        self.direction = nn.Parameter(initial(torch.empty(output_width, kernel, width)))  # (O, K, D)
        # (O, 1, 1) and not (O), so that weight decay counts it among the weights: on the direction it has no effect.
        self.magnitude = nn.Parameter(self._norm().detach()) if weight_norm else None
        self.bias = nn.Parameter(torch.zeros(output_width))

    def _norm(self) -> Tensor:
        return cast(Tensor, torch.linalg.vector_norm(self.direction, dim=(1, 2), keepdim=True))

    @property
    def weight(self) -> Tensor:
        """The kernels (O, K, D): with weight normalisation each output's direction times its magnitude."""
        return self.direction if self.magnitude is None else self.direction * (self.magnitude / self._norm())

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, O); the state is the last inputs, as many as the convolution looks back."""
        if context.row.padding_mask is not None and self.kernel > 1:
            x = (
                x * context.row.padding_mask[..., None]
            )  # here and not earlier: the last layer's bias made padding non-zero
        left = cast(Tensor | None, state)
        y = convolution(
            x,
            self.weight,
            self.bias,
            causal=self.causal,
            dilation=self.dilation,
            documents=context.row.documents,
            left=left,
        )
        return y, last_inputs(left, x)

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros to the left of the first token; None for a kernel of 1."""
        back = (self.kernel - 1) * self.dilation
        return like.new_zeros(rows, back, self.direction.shape[2]) if back else None

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass; the row's length does not matter."""
        return 2 * self.direction.numel()

    def kernels(self, x: Tensor, context: Context) -> Tensor:
        """(O, K) the length of every tap's vector of weights for each output."""
        return cast(Tensor, torch.linalg.vector_norm(self.weight, dim=-1))

    def offsets(self) -> list[int]:
        """Distance of each tap from the output, in tokens; negative before it."""
        return tap_offsets(self.kernel, self.causal, self.dilation)


class Convolutions(Part):
    """The common part of blocks of convolutions one after the other: their memory, cost and reach.

    `projection` is the residual connection's linear layer where the widths differ.
    """

    skips_padding = True

    def __init__(self, convolutions: list[Convolution], projection: Convolution | None) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)
        self.projection = projection

    def around(self, x: Tensor, context: Context) -> Tensor:
        """The residual connection's summand: x, or its projection."""
        return x if self.projection is None else self.projection(x, context)[0]

    def start(self, rows: int, like: Tensor) -> State:
        """The states of all convolutions before the first token, in their order."""
        return tuple(each.start(rows, like) for each in self._owned())

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        projection = 0 if self.projection is None else self.projection.flops_per_token(length)
        return projection + sum(each.flops_per_token(length) for each in self._owned())

    def kernels(self, x: Tensor, context: Context) -> Tensor:
        """(N, K) the kernels of all convolutions that have as many taps as the longest."""
        longest = self._longest()
        return torch.cat([each.kernels(x, context) for each in self._owned() if each.kernel == longest.kernel])

    def offsets(self) -> list[int]:
        """Distance of each tap of the longest convolution from the output, in tokens; negative before it."""
        return self._longest().offsets()

    def reach(self) -> tuple[float, float]:
        """The sums of the convolutions' reaches, to the left and to the right."""
        reaches = [each.reach() for each in self._owned()]
        return sum(left for left, _ in reaches), sum(right for _, right in reaches)

    def each_with(self, state: State) -> list[tuple[Convolution, State]]:
        """The convolutions, each with its entry of the block's state."""
        states = (None,) * len(self.convolutions) if state is None else cast(tuple[State, ...], state)
        return list(zip(self._owned(), states, strict=True))

    def _longest(self) -> Convolution:
        return max(self._owned(), key=lambda each: each.kernel)

    def _owned(self) -> list[Convolution]:
        return cast(list[Convolution], list(self.convolutions))
