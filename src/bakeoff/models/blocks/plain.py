"""A mixer and nothing around it, as the layers of a recurrent language model are."""

from typing import Literal

from pydantic import Field
from torch import Tensor

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.context import Context, Place
from bakeoff.models.mixers import MixerConfig
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import dropout


class Plain(Part):
    """dropout(f(x)): with the embedding's dropout, that of Zaremba et al. 2014 (arXiv:1409.2329, section 3.1).

    With a residual connection x + dropout(f(x)), between the layers of ELMo (Peters et al. 2018, section 3.4).
    """

    def __init__(self, function: Part, residual: bool, place: Place) -> None:
        super().__init__()
        self.function = function
        self.residual = residual
        self.dropout = place.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is the function's."""
        y, state = self.function(x, context, state)
        y = dropout(y, self.dropout, self.training)
        return x + y if self.residual else y, state

    def start(self, rows: int, like: Tensor) -> State:
        """The function's."""
        return self.function.start(rows, like)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens."""
        return self.function.flops_per_token(length)

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """The function's."""
        return self.function.kernels(x, context)

    def offsets(self) -> list[int]:
        """The function's."""
        return self.function.offsets()

    def reach(self) -> tuple[float, float]:
        """The function's."""
        return self.function.reach()


class PlainBlockConfig(Config):
    """A mixer without norm or feed-forward network."""

    kind: Literal["plain"] = "plain"
    """The block's name."""
    repeat: int | None = Field(default=None, gt=0)
    """How many layers in a row have this block, where `block` is a list."""
    mixer: MixerConfig
    """What mixes tokens."""
    residual: bool = False
    """The block's input is added to its output."""

    @property
    def needs_final_norm(self) -> bool:
        """There are no norms."""
        return False

    @property
    def mixer_config(self) -> MixerConfig:
        """What mixes tokens."""
        return self.mixer

    def output_width(self, width: int, layer: int) -> int:
        """The width of what leaves the block: that of what comes in."""
        return width

    def build(self, place: Place) -> dict[str, Part]:
        """The parts of one layer in the order in which they are applied.

        Raises:
            UserError: there is an encoder, to which nothing in the block attends.
        """
        if place.source is not None:
            raise UserError("decoder.block: plain cannot attend to the encoder; use transformer with 'cross'")
        return {"mixer": Plain(self.mixer.build(place), self.residual, place)}
