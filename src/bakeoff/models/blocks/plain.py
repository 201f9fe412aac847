"""A mixer and nothing around it, as in the layers of a recurrent language model."""

from typing import ClassVar, Literal

from torch import Tensor
from typing_extensions import override

from bakeoff.models.blocks.block import BlockBaseConfig, refuse_source
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers import MixerConfig
from bakeoff.models.part import Part, State, Wrapper, apply_part
from bakeoff.ops.dropout import dropout


class Plain(Wrapper):
    """dropout(f(x)), which with the embedding's dropout is as in Zaremba et al. 2014 (arXiv:1409.2329, section 3.1).

    With a residual connection x + dropout(f(x)), between the layers of ELMo (Peters et al. 2018, section 3.4).
    """

    def __init__(self, function: Part, residual: bool, context: BuildContext) -> None:
        super().__init__(function)
        self.residual = residual
        self.dropout = context.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is that of the function."""
        y, state = apply_part(self.function, x, context, state)
        y = dropout(y, self.dropout, self.training)
        return x + y if self.residual else y, state


class PlainBlockConfig(BlockBaseConfig):
    """A mixer without norm or feed-forward network."""

    kind: Literal["plain"] = "plain"
    """The block's name."""
    mixer: MixerConfig
    """The mixer of tokens."""
    residual: bool = False
    """The block's input is added to its output."""

    hides_ahead: ClassVar[bool] = True

    @property
    @override
    def mixer_config(self) -> MixerConfig:
        return self.mixer

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The parts of one layer in the order in which they are applied.

        Raises:
            UserError: there is an encoder, to which nothing in the block attends.
        """
        refuse_source(self.kind, context)
        return {"mixer": Plain(self.mixer.build(context), self.residual, context)}
