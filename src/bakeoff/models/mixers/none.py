"""No mixing at all: a control that shows what a model can do without seeing any other token."""

from typing import ClassVar, Literal

from torch import Tensor
from typing_extensions import override

from bakeoff.models.context import BuildContext, Context
from bakeoff.models.linear import Linear
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part, State


class NoMixingConfig(MixerBaseConfig):
    """Every token sees itself only, through the linear layers that attention has for values and output."""

    kind: Literal["none"] = "none"
    """The mixer's name."""
    hides_ahead: ClassVar[bool] = True

    @override
    def build(self, context: BuildContext) -> "NoMixing":
        return NoMixing(context)


class NoMixing(Part):
    """W_O W_V x; B batch, T length, D width."""

    skips_padding = True

    def __init__(self, context: BuildContext) -> None:
        super().__init__()
        self.value = Linear(context.width, context.width, bias=context.bias)
        self.output = Linear(context.width, context.width, bias=context.bias)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is None."""
        return self.output(self.value(x)), None

    @property
    @override
    def reads_packed(self) -> bool:
        return True

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        return 2 * 2 * self.output.in_features**2
