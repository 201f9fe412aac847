"""Uniform attention: a control that shows what a model can do without choosing which tokens to read."""

from typing import ClassVar, Literal, cast

import torch
from torch import Tensor
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part, State


class AverageConfig(MixerBaseConfig):
    """The average of the tokens that attention would see (Zhang et al. 2018, arXiv:1805.00631, equation 1)."""

    kind: Literal["average"] = "average"
    """The mixer's name."""
    hides_ahead: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        """False: every token that is seen counts for ever."""
        return False

    @override
    def build(self, context: BuildContext) -> "Average":
        return Average(context)


class Average(Part):
    """W_O mean(W_V x), over all tokens of the document, or over those up to the present token; D width."""

    skips_padding = True

    def __init__(self, context: BuildContext) -> None:
        super().__init__()
        self.causal = context.causal
        self.value = Linear(context.width, context.width, bias=context.bias)
        self.output = Linear(context.width, context.width, bias=context.bias)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the sum of the values so far and their number."""
        value = self.value(x)
        if state is None:
            return self.output(self._weights(x, context) @ value), None
        total, count = cast(tuple[Tensor, Tensor], state)  # (B, D), (B, 1)
        each = (
            torch.ones_like(value[..., :1])
            if context.row.padding_mask is None
            else context.row.padding_mask[..., None].to(value.dtype)
        )
        totals = total[:, None] + (value * each).cumsum(1)
        counts = count[:, None] + each.cumsum(1)  # (B, T, 1)
        return self.output(totals / counts.clamp(min=1)), (totals[:, -1], counts[:, -1])

    def _weights(self, x: Tensor, context: Context) -> Tensor:
        """(B or 1, T, T) the weight of each token in each average; sums of a whole row would leak by rounding."""
        length = x.shape[1]
        seen = torch.ones(1, length, length, dtype=torch.bool, device=x.device)
        if context.row.documents is not None:
            seen = context.row.documents[:, :, None] == context.row.documents[:, None]
        elif context.row.padding_mask is not None:
            seen = context.row.padding_mask[:, None].expand(-1, length, -1)
        if self.causal or context.row.behind:
            seen = seen.tril()
        return seen.to(x.dtype) / seen.sum(-1, keepdim=True).clamp(min=1)

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros for the sum and the number of tokens."""
        return like.new_zeros(rows, self.output.in_features), like.new_zeros(rows, 1)

    @override
    def flops_per_token(self, length: int) -> int:
        width = self.output.in_features
        return 2 * 2 * width**2 + 2 * length * width

    def reach(self) -> tuple[float, float]:
        """The whole row on both sides; causal: all tokens before."""
        return float("inf"), 0 if self.causal else float("inf")
