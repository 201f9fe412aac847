"""The common config of all blocks: the layers that have the block, its width, and the parts that it builds."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from bakeoff.config import PartConfig
from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.cross_attention import CrossAttentionConfig
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.part import Part


class BlockBaseConfig(PartConfig):
    """A block that keeps the width and needs no norm after it, unless it says otherwise."""

    kind: str
    """The block's name."""
    repeat: int | None = Field(default=None, gt=0)
    """Number of neighbouring layers with this block, where `block` is a list."""
    at: int | Literal["last"] | None = Field(default=None)
    """The layer with this block, counted from 1, where `block` is a list; blocks without `at` or `every` make up the
    others.
    """

    every: int | None = Field(default=None, gt=0)
    """N, where `block` is a list: the first layer and each N-th layer after it have this block, except layers to which
    an `at` gives another one.
    """

    hides_ahead: ClassVar[bool] = False
    """What is not the mixer can read rows whose tokens see no later ones (`Row.behind`), too."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if sum(each is not None for each in (self.at, self.repeat, self.every)) > 1:
            raise ValueError("a block has either 'repeat', 'at' or 'every'")
        return self

    @property
    def scales_branches(self) -> bool:
        """Whether the last linear maps of the block's residual branches can begin scaled; its parts are `Wrapper`s."""
        return False

    @property
    def needs_final_norm(self) -> bool:
        """Whether the stack needs a norm after its last layer: the block has norms, but none at its end."""
        return False

    @property
    def mixer_config(self) -> MixerBaseConfig:
        """The mixer's config; a block that mixes tokens itself gives one of its own name with a window at most."""
        return MixerBaseConfig(kind=self.kind)

    @property
    def cross_config(self) -> CrossAttentionConfig | None:
        """The config of the attention to a source; None: there is none."""
        return None

    def output_width(self, width: int, layer: int) -> int:
        """The width of the block's output in layer `layer`, for an input of width `width`."""
        return width

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The parts of one layer in the order in which they are applied."""
        raise NotImplementedError


def refuse_source(kind: str, context: BuildContext) -> None:
    """Raise a UserError if there is an encoder, because the layers could not attend to its output."""
    if context.source is not None:
        raise UserError(
            f"decoder.block: {kind} cannot attend to an encoder; use a transformer block, or drop the encoder"
        )
